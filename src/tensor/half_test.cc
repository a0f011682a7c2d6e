#include "tensor/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace hearth {
namespace {

TEST(F16, EveryFiniteValueSurvivesARoundTrip) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const F16 h{static_cast<std::uint16_t>(bits)};
    const float value = ToFloat(h);
    if (std::isnan(value)) continue;
    ASSERT_EQ(ToF16(value).bits, h.bits) << bits;
  }
}

TEST(F16, RoundsToNearestEven) {
  EXPECT_EQ(ToF16(1.0f + 0x1p-11f).bits, 0x3c00);      // tie: down to even
  EXPECT_EQ(ToF16(1.0f + 3 * 0x1p-11f).bits, 0x3c02);  // tie: up to even
  EXPECT_EQ(ToF16(65519.0f).bits, 0x7bff);
  EXPECT_EQ(ToF16(65520.0f).bits, 0x7c00);
  EXPECT_EQ(ToF16(0x1p-25f).bits, 0);  // tie with zero
  EXPECT_EQ(ToF16(0x1.8p-25f).bits, 1);
  EXPECT_TRUE(
      std::isnan(ToFloat(ToF16(std::numeric_limits<float>::quiet_NaN()))));
}

TEST(BF16, RoundsToNearestEven) {
  EXPECT_EQ(ToBF16(1.0f).bits, 0x3f80);
  EXPECT_EQ(ToBF16(1.0f + 0x1p-8f).bits, 0x3f80);
  EXPECT_EQ(ToBF16(1.0f + 3 * 0x1p-8f).bits, 0x3f82);
  EXPECT_TRUE(
      std::isnan(ToFloat(ToBF16(std::numeric_limits<float>::quiet_NaN()))));
}

}  // namespace
}  // namespace hearth
