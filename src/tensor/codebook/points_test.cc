#include "tensor/codebook/points.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/hash.h"

namespace hearth {
namespace {

template <typename T, std::size_t kSize>
std::string HashOf(const T (&points)[kSize]) {
  Sha256 hash;
  for (const T point : points) {
    std::byte bytes[sizeof(T)];
    StoreLe(bytes, point);
    hash.Update(bytes);
  }
  return ToHex(hash.Finish(), 8);
}

// Of the tables that GGUF's reference implementation carries, byte by byte.
TEST(Codebook, HasThePointsOfTheReference) {
  const EightPoints& eights = CodebookEights();
  EXPECT_EQ(HashOf(eights.iq2_xxs), "05826b5d3e472a3a");
  EXPECT_EQ(HashOf(eights.iq2_xs), "06e47aaca60b4dc1");
  EXPECT_EQ(HashOf(eights.iq2_s), "e1aa1473412b0552");
  EXPECT_EQ(HashOf(CodebookFours().iq3_xxs), "46e35f5a997efdee");
  EXPECT_EQ(HashOf(CodebookFours().iq3_s), "bd1af4945a1717c6");
}

TEST(Codebook, OfIq1IsThatOfTheReferenceTimesEight) {
  Sha256 hash;
  for (const std::uint64_t point : CodebookEights().iq1) {
    std::byte bytes[8];
    StoreLe(bytes, point);
    for (std::byte& byte : bytes) {
      byte = static_cast<std::byte>((std::to_integer<int>(byte) - 64) / 8);
    }
    hash.Update(bytes);
  }
  EXPECT_EQ(ToHex(hash.Finish(), 8), "07540ffc1aeaf6ad");
}

}  // namespace
}  // namespace hearth
