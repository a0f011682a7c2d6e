#include "tensor/quantize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "base/bytes.h"
#include "tensor/dequantize.h"
#include "tensor/half.h"

namespace hearth {
namespace {

constexpr DType kTypes[] = {DType::kQ8_0, DType::kQ4_0, DType::kQ5_0,
                            DType::kQ4_K, DType::kQ6_K};

std::vector<float> Normal(std::size_t n, unsigned seed, float scale = 1.0f) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal(0.0f, scale);
  std::vector<float> x(n);
  for (float& value : x) value = normal(rng);
  return x;
}

std::vector<std::byte> Quantize(DType dtype, const std::vector<float>& x) {
  std::vector<std::byte> bytes(*BytesOf(dtype, x.size()));
  QuantizeRow(dtype, x.data(), static_cast<std::int64_t>(x.size()),
              bytes.data());
  return bytes;
}

std::vector<float> RoundTrip(DType dtype, const std::vector<float>& x) {
  std::vector<float> out(x.size());
  DequantizeBlocks(dtype, Quantize(dtype, x).data(),
                   static_cast<std::int64_t>(x.size()), out.data());
  return out;
}

// Root mean square of the error over that of the values.
double RelativeError(DType dtype, const std::vector<float>& x) {
  const std::vector<float> y = RoundTrip(dtype, x);
  double error = 0, size = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    error += (double{x[i]} - y[i]) * (double{x[i]} - y[i]);
    size += double{x[i]} * x[i];
  }
  return std::sqrt(error / size);
}

// The bounds that docs/formats/tensor-types.md states, for normal values.
TEST(Quantize, NormalValuesLoseNoMoreThanStated) {
  for (const float scale : {1.0f, 0.02f, 300.0f}) {
    const std::vector<float> x = Normal(64 * 256, 1, scale);
    EXPECT_LT(RelativeError(DType::kQ8_0, x), 0.0065);
    EXPECT_LT(RelativeError(DType::kQ4_0, x), 0.10);
    EXPECT_LT(RelativeError(DType::kQ5_0, x), 0.05);
    EXPECT_LT(RelativeError(DType::kQ4_K, x), 0.08);
    EXPECT_LT(RelativeError(DType::kQ6_K, x), 0.021);
  }
}

TEST(Quantize, Q8_0StaysWithinHalfAStep) {
  const std::vector<float> x = Normal(32 * 100, 2);
  const std::vector<float> y = RoundTrip(DType::kQ8_0, x);
  for (std::size_t b = 0; b < x.size(); b += 32) {
    float peak = 0.0f;
    for (std::size_t i = b; i < b + 32; ++i) {
      peak = std::max(peak, std::abs(x[i]));
    }
    // Half a step, and the rounding of the scale to f16.
    const float bound = peak / 127.0f / 2.0f + peak * 0x1p-11f;
    for (std::size_t i = b; i < b + 32; ++i) {
      ASSERT_LE(std::abs(x[i] - y[i]), bound * 1.0001f);
    }
  }
}

TEST(Quantize, ReferenceRoundingOfQ8_0AndQ4_0) {
  std::vector<float> x(32, 0.0f);
  x[0] = 127.0f;  // scale 1
  x[1] = 2.5f;    // halves go away from zero
  x[2] = -2.5f;
  x[3] = 0.49f;
  const auto q8 = Quantize(DType::kQ8_0, x);
  EXPECT_EQ(LoadLe<std::uint16_t>(q8.data()), 0x3c00);
  EXPECT_EQ(static_cast<int>(static_cast<std::int8_t>(q8[2])), 127);
  EXPECT_EQ(static_cast<int>(static_cast<std::int8_t>(q8[3])), 3);
  EXPECT_EQ(static_cast<int>(static_cast<std::int8_t>(q8[4])), -3);
  EXPECT_EQ(static_cast<int>(static_cast<std::int8_t>(q8[5])), 0);

  std::vector<float> y(32, 0.0f);
  y[0] = 8.0f;    // the peak, positive: scale -1
  y[1] = 7.5f;    // 8.5 - 7.5 = 1
  y[16] = -8.0f;  // code 16, bounded to 15: -7
  const auto q4 = Quantize(DType::kQ4_0, y);
  EXPECT_EQ(LoadLe<std::uint16_t>(q4.data()), 0xbc00);
  EXPECT_EQ(std::to_integer<int>(q4[2]), 0xf0);
  EXPECT_EQ(std::to_integer<int>(q4[3]), 0x81);
  EXPECT_EQ(std::to_integer<int>(q4[4]), 0x88);
}

TEST(Quantize, ZerosStayZero) {
  for (const DType dtype : kTypes) {
    const std::vector<float> x(256, 0.0f);
    EXPECT_EQ(RoundTrip(dtype, x), x) << InfoOf(dtype).name;
  }
}

TEST(Quantize, ConstantAndOneSidedBlocksComeNear) {
  for (const DType dtype : kTypes) {
    for (const float value : {0.75f, -0.75f}) {
      const std::vector<float> x(256, value);
      for (const float y : RoundTrip(dtype, x)) {
        ASSERT_NEAR(y, value, 0.02f) << InfoOf(dtype).name;
      }
    }
    std::vector<float> x = Normal(256, 3);
    for (float& value : x) value = 5.0f + 0.1f * value;
    const double bound = dtype == DType::kQ4_0 ? 0.1 : 0.03;
    EXPECT_LT(RelativeError(dtype, x), bound) << InfoOf(dtype).name;
  }
}

// Values that were dequantised from a format are its own codes again, or as
// good as: a second pass loses next to nothing.
TEST(Quantize, ASecondPassAddsLittle) {
  for (const DType dtype : kTypes) {
    const std::vector<float> once = RoundTrip(dtype, Normal(2048, 4));
    EXPECT_LT(RelativeError(dtype, once), 0.03) << InfoOf(dtype).name;
  }
}

TEST(Quantize, TinyAndHugeValuesAreFine) {
  for (const DType dtype : kTypes) {
    for (const float value : {1e-30f, 1e-7f, 60000.0f}) {
      std::vector<float> x = Normal(256, 5);
      for (float& v : x) v = std::clamp(v, -1.0f, 1.0f) * value;
      for (const float y : RoundTrip(dtype, x)) {
        ASSERT_TRUE(std::isfinite(y)) << InfoOf(dtype).name;
        ASSERT_LE(std::abs(y), 1.2f * value + 1e-6f) << InfoOf(dtype).name;
      }
    }
  }
}

}  // namespace
}  // namespace hearth
