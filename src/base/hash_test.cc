#include "base/hash.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

TEST(Sha256, MatchesTheStandardVector) {
  // FIPS 180-2, appendix B.1.
  EXPECT_EQ(ToHex(Sha256().Update(AsBytes("abc")).Finish()),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Sha256, FieldsCannotTradeBytes) {
  const Digest a = Sha256().Field("5").Field("6foo").Finish();
  const Digest b = Sha256().Field("56").Field("foo").Finish();
  EXPECT_NE(a, b);
}

TEST(Checksum, NoticesOneBit) {
  std::string text(1000, 'a');
  const auto before = Checksum64(AsBytes(text));
  text[500] ^= 1;
  EXPECT_NE(Checksum64(AsBytes(text)), before);
}

}  // namespace
}  // namespace hearth
