#include "tensor/quantize.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>
#include <vector>

#include "base/bytes.h"
#include "tensor/dequantize.h"
#include "tensor/half.h"

namespace hearth {
namespace {

// Block formats, with the bounds that docs/formats/tensor-types.md states: the
// error of normal values, root mean square over root mean square.
struct Bound {
  DType dtype;
  double normal;
};
constexpr Bound kBounds[] = {
    {DType::kQ8_0, 0.0065},  {DType::kQ6_K, 0.019},   {DType::kQ5_K, 0.038},
    {DType::kQ5_1, 0.042},   {DType::kQ5_0, 0.047},   {DType::kQ4_K, 0.075},
    {DType::kIQ4_NL, 0.080}, {DType::kIQ4_XS, 0.081}, {DType::kQ4_1, 0.084},
    {DType::kQ4_0, 0.093},   {DType::kQ3_K, 0.163},   {DType::kQ2_K, 0.30}};

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

TEST(Quantize, NormalValuesLoseNoMoreThanStated) {
  for (const float scale : {1.0f, 0.02f, 300.0f}) {
    const std::vector<float> x = Normal(16 * 256, 1, scale);
    for (const auto& [dtype, bound] : kBounds) {
      const double error = RelativeError(dtype, x);
      EXPECT_LT(error, bound) << InfoOf(dtype).name;
      EXPECT_GT(error, bound / 2) << InfoOf(dtype).name << ": the page is lax";
    }
  }
}

// Values that some block of the format has, with all its extremes in use.
std::vector<float> Representable(DType dtype, std::mt19937& rng) {
  const auto any = [&rng](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(rng);
  };
  const bool affine_k =
      dtype == DType::kQ2_K || dtype == DType::kQ4_K || dtype == DType::kQ5_K;
  const int n = InfoOf(dtype).block_elements;
  const int part =
      n == 32 ? 32
      : dtype == DType::kQ2_K || dtype == DType::kQ3_K || dtype == DType::kQ6_K
          ? 16
          : 32;
  const float d = 0.0078125f * static_cast<float>(any(1024, 2047)) / 1024;
  const float dmin = 0.5f * d;
  std::vector<float> x;
  for (int j = 0; j < n / part; ++j) {
    float scale = d, minimum = 0;
    int low = 0, high = 0;
    switch (dtype) {
      case DType::kQ8_0:
        low = -127, high = 127;
        break;
      case DType::kQ4_0:
        low = -8, high = 7;
        break;
      case DType::kQ5_0:
        low = -16, high = 15;
        break;
      case DType::kQ4_1:
        high = 15, minimum = d;
        break;
      case DType::kQ5_1:
        high = 31, minimum = d;
        break;
      case DType::kQ3_K:
        low = -4, high = 3;
        scale *= static_cast<float>(j == 0 ? -32 : any(16, 31));
        break;
      case DType::kQ6_K:
        low = -32, high = 31;
        scale *= static_cast<float>(j == 0 ? -128 : any(64, 127));
        break;
      case DType::kIQ4_XS:
        scale *= static_cast<float>(j == 0 ? -32 : any(16, 31));
        [[fallthrough]];
      case DType::kIQ4_NL:
        high = 15;
        break;
      default: {
        high = dtype == DType::kQ2_K ? 3 : dtype == DType::kQ4_K ? 15 : 31;
        const int last = dtype == DType::kQ2_K ? 15 : 63;
        scale *= static_cast<float>(j == 0 ? last : any(last / 2, last));
        minimum = dmin * static_cast<float>(j == 1 ? last : any(1, last));
      }
    }
    for (int i = 0; i < part; ++i) {
      const int code = i == 0 ? low : i == 1 ? high : any(low, high);
      const bool table = dtype == DType::kIQ4_NL || dtype == DType::kIQ4_XS;
      const float level = static_cast<float>(
          table ? kIq4Values[static_cast<std::size_t>(code)] : code);
      x.push_back(affine_k ? scale * level - minimum : scale * level + minimum);
    }
  }
  return x;
}

TEST(Quantize, WhatAFormatCanExpressComesBackExactly) {
  std::mt19937 rng(11);
  for (const auto& [dtype, bound] : kBounds) {
    for (int round = 0; round < 20; ++round) {
      const std::vector<float> x = Representable(dtype, rng);
      ASSERT_EQ(RoundTrip(dtype, x), x)
          << InfoOf(dtype).name << " in round " << round;
    }
  }
}

// Magnitudes from subnormal to the largest float beside each other.
TEST(Quantize, AnyFiniteValuesGiveFiniteOnes) {
  std::mt19937 rng(12);
  for (const auto& [dtype, bound] : kBounds) {
    for (int round = 0; round < 40; ++round) {
      std::vector<float> x(256);
      for (float& value : x) {
        do {
          value = std::bit_cast<float>(static_cast<std::uint32_t>(rng()));
        } while (!std::isfinite(value));
        if (round % 4 == 1) value = std::copysign(3.4e38f, value);
        if (round % 4 == 2) value = std::fmod(value, 1e-38f);
        if (round % 4 == 3 && rng() % 8 != 0) value = 0.0f;
      }
      for (const float y : RoundTrip(dtype, x)) {
        ASSERT_TRUE(std::isfinite(y))
            << InfoOf(dtype).name << " in round " << round;
      }
    }
  }
}

TEST(Quantize, SmallValuesBesideAnOutlierKeepTheirSign) {
  for (const auto& [dtype, bound] : kBounds) {
    if (InfoOf(dtype).block_elements == 32) continue;
    std::vector<float> x = Normal(256, 13, 0.01f);
    x[200] = 1.0f;  // another part's trouble
    const std::vector<float> y = RoundTrip(dtype, x);
    double dot = 0;
    for (std::size_t i = 0; i < 128; ++i) dot += double{x[i]} * y[i];
    EXPECT_GT(dot, 0) << InfoOf(dtype).name;
    EXPECT_NEAR(y[200], 1.0f, 0.05f) << InfoOf(dtype).name;
  }
}

TEST(Quantize, PlainFormatsRoundToNearest) {
  const std::vector<float> x = {1.0f, -0.1f, 65504.0f, 1e-8f};
  std::vector<std::byte> bytes(2 * x.size());
  QuantizeRow(DType::kF16, x.data(), 4, bytes.data());
  for (std::size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(LoadLe<std::uint16_t>(bytes.data() + 2 * i), ToF16(x[i]).bits);
  }
  QuantizeRow(DType::kBF16, x.data(), 4, bytes.data());
  for (std::size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(LoadLe<std::uint16_t>(bytes.data() + 2 * i), ToBF16(x[i]).bits);
  }
  const float largest[] = {LargestIn(DType::kF16), LargestIn(DType::kBF16)};
  QuantizeRow(DType::kF16, &largest[0], 1, bytes.data());
  EXPECT_EQ(ToFloat(F16{LoadLe<std::uint16_t>(bytes.data())}), largest[0]);
  QuantizeRow(DType::kBF16, &largest[1], 1, bytes.data());
  EXPECT_EQ(ToFloat(BF16{LoadLe<std::uint16_t>(bytes.data())}), largest[1]);
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

TEST(Quantize, ReferenceRoundingOfQ4_1AndQ5_1) {
  std::vector<float> x(32, 1.0f);
  x[0] = -2.0f;  // code 0
  x[1] = 13.0f;  // the last code: a step of 1 for Q4_1
  x[2] = 0.5f;   // halves go up
  const auto q4 = Quantize(DType::kQ4_1, x);
  EXPECT_EQ(LoadLe<std::uint16_t>(q4.data()), 0x3c00);
  EXPECT_EQ(LoadLe<std::uint16_t>(q4.data() + 2), 0xc000);
  EXPECT_EQ(std::to_integer<int>(q4[4]), 0x30);
  EXPECT_EQ(std::to_integer<int>(q4[5]), 0x3f);
  EXPECT_EQ(std::to_integer<int>(q4[6]), 0x33);
  x[1] = 29.0f;
  const auto q5 = Quantize(DType::kQ5_1, x);
  EXPECT_EQ(LoadLe<std::uint16_t>(q5.data()), 0x3c00);
  EXPECT_EQ(LoadLe<std::uint32_t>(q5.data() + 4), 2u);
  EXPECT_EQ(std::to_integer<int>(q5[9]), 0x3f);
}

TEST(Quantize, ZerosStayZero) {
  for (const auto& [dtype, normal] : kBounds) {
    const std::vector<float> x(256, 0.0f);
    EXPECT_EQ(RoundTrip(dtype, x), x) << InfoOf(dtype).name;
  }
}

TEST(Quantize, ConstantAndOneSidedBlocksComeNear) {
  for (const auto& [dtype, normal] : kBounds) {
    for (const float value : {0.75f, -0.75f}) {
      const std::vector<float> x(256, value);
      for (const float y : RoundTrip(dtype, x)) {
        ASSERT_NEAR(y, value, 0.03f) << InfoOf(dtype).name;
      }
    }
    std::vector<float> x = Normal(256, 3);
    for (float& value : x) value = 5.0f + 0.1f * value;
    EXPECT_LT(RelativeError(dtype, x), normal + 0.02) << InfoOf(dtype).name;
  }
}

// Values that were dequantised from a format are its own codes again, or as
// good as: a second pass loses next to nothing.
TEST(Quantize, ASecondPassAddsLittle) {
  for (const auto& [dtype, normal] : kBounds) {
    const std::vector<float> once = RoundTrip(dtype, Normal(2048, 4));
    EXPECT_LT(RelativeError(dtype, once), normal / 2) << InfoOf(dtype).name;
  }
}

TEST(Quantize, TinyAndHugeValuesAreFine) {
  for (const auto& [dtype, normal] : kBounds) {
    for (const float value : {1e-30f, 1e-7f, 60000.0f}) {
      std::vector<float> x = Normal(256, 5);
      for (float& v : x) v = std::clamp(v, -1.0f, 1.0f) * value;
      for (const float y : RoundTrip(dtype, x)) {
        ASSERT_TRUE(std::isfinite(y)) << InfoOf(dtype).name;
        ASSERT_LE(std::abs(y), 1.5f * value + 1e-6f) << InfoOf(dtype).name;
      }
    }
  }
}

}  // namespace
}  // namespace hearth
