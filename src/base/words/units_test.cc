#include "base/words/units.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

TEST(Units, SizesThatDifferAreToldApart) {
  EXPECT_EQ(InUnits(0), "0 bytes");
  EXPECT_EQ(InUnits(1), "1 bytes");
  EXPECT_EQ(InUnits(1023), "1023 bytes");
  EXPECT_EQ(InUnits(1024), "1 KiB");
  EXPECT_EQ(InUnits(1025), "2 KiB");
  EXPECT_EQ(InUnits(100'000), "98 KiB");
  EXPECT_EQ(InUnits(std::uint64_t{9} << 30), "9216 MiB");
  EXPECT_EQ(InUnits(std::uint64_t{10} << 30), "10 GiB");
  EXPECT_EQ(InUnits(~std::uint64_t{0}), "17179869184 GiB");
}

}  // namespace
}  // namespace hearth
