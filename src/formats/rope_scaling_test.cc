#include "formats/rope_scaling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>

namespace hearth {
namespace {

TEST(RopeScaling, PlainFrequenciesFallGeometrically) {
  const auto f = PlainFrequencies(10000, 8, "m");
  ASSERT_TRUE(f.ok());
  ASSERT_EQ(f->size(), 4u);
  EXPECT_FLOAT_EQ((*f)[0], 1.0f);
  EXPECT_FLOAT_EQ((*f)[1], 0.1f);
  EXPECT_FLOAT_EQ((*f)[3], 0.001f);
}

TEST(RopeScaling, BaseMustBeANumberFromOne) {
  for (const double base :
       {0.0, -5.0, 0.5, std::numeric_limits<double>::infinity(),
        std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_FALSE(PlainFrequencies(base, 8, "m").ok()) << base;
  }
}

// Wavelengths at the corners of the Llama 3.1 rule, by hand: with an original
// context of 64, turns = 64 f / 2 pi; below 1 turn scaled, above 4 kept.
TEST(RopeScaling, Llama3KeepsFastAndStretchesSlowFrequencies) {
  constexpr double kTurn = 2 * std::numbers::pi / 64;
  std::vector<float> f = {static_cast<float>(5 * kTurn),
                          static_cast<float>(2.5 * kTurn),
                          static_cast<float>(0.5 * kTurn)};
  const std::vector<float> before = f;
  ASSERT_TRUE(ScaleLlama3({8, 1, 4, 64}, f, "m").ok());
  EXPECT_EQ(f[0], before[0]);
  EXPECT_NEAR(f[1], before[1] * (0.5 + 0.5 / 8), 1e-6);
  EXPECT_NEAR(f[2], before[2] / 8, 1e-7);
}

TEST(RopeScaling, NonsenseIsRefused) {
  std::vector<float> f = {1.0f};
  EXPECT_FALSE(ScaleLinear(0, f, "m").ok());
  EXPECT_FALSE(ScaleLinear(-1, f, "m").ok());
  EXPECT_FALSE(ScaleLinear(NAN, f, "m").ok());
  EXPECT_FALSE(ScaleLinear(1e-300, f, "m").ok());
  EXPECT_FALSE(ScaleLlama3({0, 1, 4, 64}, f, "m").ok());
  EXPECT_FALSE(ScaleLlama3({8, 4, 4, 64}, f, "m").ok());
  EXPECT_FALSE(ScaleLlama3({8, 1, 4, 0}, f, "m").ok());
  EXPECT_FALSE(ScaleByFactors({}, f, "m").ok());
  EXPECT_EQ(f[0], 1.0f);
}

}  // namespace
}  // namespace hearth
