#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <ostream>

#include "kernels/test_inputs.h"

namespace hearth {

void PrintTo(DType dtype, std::ostream* out) { *out << InfoOf(dtype).name; }

namespace {

using namespace kernels_testing;  // NOLINT: a test's own helpers

struct Linear {
  DType dtype;
  WeightLayout layout;
};

void PrintTo(const Linear& linear, std::ostream* out) {
  *out << InfoOf(linear.dtype).name
       << (linear.layout == WeightLayout::kOutIn ? " out-in" : " in-out");
}

constexpr Linear kLinears[] = {
    {DType::kF32, WeightLayout::kOutIn},
    {DType::kF16, WeightLayout::kOutIn},
    {DType::kBF16, WeightLayout::kOutIn},
    {DType::kQ8_0, WeightLayout::kOutIn},
    {DType::kQ4_0, WeightLayout::kOutIn},
    {DType::kTgInt4, WeightLayout::kOutIn},
    {DType::kF32, WeightLayout::kInOut},
    {DType::kF16, WeightLayout::kInOut},
    {DType::kTgInt4, WeightLayout::kInOut},
};

bool Quantised(DType dtype) {
  return dtype == DType::kQ8_0 || dtype == DType::kQ4_0;
}

struct Size {
  std::int64_t n_out;
  std::int64_t n_in;
};

// Around every boundary: lanes, groups, tiles, chunks of k.
std::vector<Size> SizesFor(DType dtype) {
  if (Quantised(dtype)) {
    return {{1, 32}, {16, 64}, {17, 96}, {50, 320}, {64, 1056}};
  }
  return {{1, 1},    {16, 16},   {15, 31}, {17, 47},
          {50, 100}, {64, 1061}, {96, 512}};
}

class MatmulTest : public testing::TestWithParam<Linear> {
 protected:
  TestWeights Make(Size size, unsigned seed) const {
    return MakeWeights(GetParam().dtype, GetParam().layout, size.n_out,
                       size.n_in, seed);
  }
};

INSTANTIATE_TEST_SUITE_P(Linears, MatmulTest, testing::ValuesIn(kLinears));

TEST_P(MatmulTest, EveryIsaGivesTheBitsOfScalar) {
  for (const Size size : SizesFor(GetParam().dtype)) {
    const TestWeights w = Make(size, 1);
    for (const int n_rows : {1, 2, 3, 5, 8, 9, 13, 33, 101}) {
      const auto x =
          RandomFloats(static_cast<std::size_t>(n_rows * size.n_in), 2);
      const auto bias = RandomFloats(static_cast<std::size_t>(size.n_out), 3);
      const MatmulCall call{.n_rows = n_rows,
                            .bias = n_rows % 2 ? bias.data() : nullptr};
      const auto expected =
          RunMatmul(*AvailableKernels()[0], w.matrix, x, call);
      for (const Kernels* kernels : AvailableKernels()) {
        const auto y = RunMatmul(*kernels, w.matrix, x, call);
        ASSERT_TRUE(SameBits(y, expected))
            << kernels->isa << ' ' << size.n_out << 'x' << size.n_in << ", "
            << n_rows << " rows, " << FirstDifference(y, expected);
      }
    }
  }
}

TEST_P(MatmulTest, ARowIsTheSameAloneAndAmongOthers) {
  for (const Size size : SizesFor(GetParam().dtype)) {
    const TestWeights w = Make(size, 4);
    const int n_rows = 107;
    const auto in = static_cast<std::size_t>(size.n_in);
    const auto out = static_cast<std::size_t>(size.n_out);
    const auto x = RandomFloats(in * n_rows, 5);
    for (const Kernels* kernels : AvailableKernels()) {
      const auto all = RunMatmul(*kernels, w.matrix, x, {.n_rows = n_rows});
      for (const std::size_t r : {0, 1, 7, 95, 96, 106}) {
        const auto one =
            RunMatmul(*kernels, w.matrix, std::span(x).subspan(r * in, in),
                      {.n_rows = 1});
        ASSERT_TRUE(SameBits(one, std::span(all).subspan(r * out, out)))
            << kernels->isa << " row " << r;
      }
    }
  }
}

TEST_P(MatmulTest, ColumnsMayBeSplitOverThreads) {
  const Size size = Quantised(GetParam().dtype) ? Size{77, 96} : Size{77, 53};
  const TestWeights w = Make(size, 6);
  for (const int n_rows : {1, 12, 40}) {
    const auto x =
        RandomFloats(static_cast<std::size_t>(n_rows * size.n_in), 7);
    for (const Kernels* kernels : AvailableKernels()) {
      const auto whole = RunMatmul(*kernels, w.matrix, x, {.n_rows = n_rows});
      auto joined =
          RunMatmul(*kernels, w.matrix, x, {.n_rows = n_rows, .n_end = 32});
      const auto right =
          RunMatmul(*kernels, w.matrix, x, {.n_rows = n_rows, .n_begin = 32});
      for (std::size_t i = 0; i < joined.size(); ++i) {
        const bool in_left = i % 77 < 32;
        // Each call wrote its own columns and no others.
        ASSERT_EQ(std::isnan(joined[i]), !in_left);
        ASSERT_EQ(std::isnan(right[i]), in_left);
        if (!in_left) joined[i] = right[i];
      }
      ASSERT_TRUE(SameBits(joined, whole)) << kernels->isa;
    }
  }
}

// The float formats differ from an exact sum by rounding only: n_in additions,
// each within half an ulp of a partial sum that is at most sum |w x|. The int8
// formats add the rounding of the activations to steps of absmax / 127.
TEST_P(MatmulTest, StaysNearAnExactSum) {
  const Size size = Quantised(GetParam().dtype) ? Size{33, 320} : Size{33, 333};
  const TestWeights w = Make(size, 8);
  const auto in = static_cast<std::size_t>(size.n_in);
  const auto x = RandomFloats(in * 9, 9);
  std::vector<float> weights(in * 33);
  WeightMatrix flat = w.matrix;
  flat.layout = WeightLayout::kOutIn;
  for (const Kernels* kernels : AvailableKernels()) {
    if (GetParam().layout == WeightLayout::kInOut) {
      flat.n_out = size.n_in;
      flat.n_in = size.n_out;
    }
    for (std::int64_t row = 0; row < flat.n_out; ++row) {
      kernels->dequantize_row(flat, row, weights.data() + row * flat.n_in);
    }
    const auto y = RunMatmul(*kernels, w.matrix, x, {.n_rows = 9});
    for (std::size_t r = 0; r < 9; ++r) {
      for (std::size_t n = 0; n < 33; ++n) {
        double sum = 0;
        double magnitude = 0;
        double largest = 0;
        double weight_sum = 0;
        for (std::size_t k = 0; k < in; ++k) {
          const double weight = GetParam().layout == WeightLayout::kOutIn
                                    ? weights[n * in + k]
                                    : weights[k * 33 + n];
          sum += weight * x[r * in + k];
          magnitude += std::abs(weight * x[r * in + k]);
          largest = std::max(largest, std::abs(double{x[r * in + k]}));
          weight_sum += std::abs(weight);
        }
        double tolerance = magnitude * static_cast<double>(size.n_in) * 0x1p-24;
        if (Quantised(GetParam().dtype)) {
          tolerance += weight_sum * largest / 127 / 2;
        }
        ASSERT_NEAR(y[r * 33 + n], sum, tolerance) << kernels->isa;
      }
    }
  }
}

TEST_P(MatmulTest, WeightsMayLieAtAnyAddress) {
  const Size size = Quantised(GetParam().dtype) ? Size{18, 64} : Size{18, 37};
  const auto x = RandomFloats(static_cast<std::size_t>(20 * size.n_in), 10);
  for (const Kernels* kernels : AvailableKernels()) {
    std::vector<float> expected;
    for (const std::size_t misalign : {0, 1, 3, 6, 17, 63}) {
      TestWeights w = MakeWeights(GetParam().dtype, GetParam().layout,
                                  size.n_out, size.n_in, 11, 0);
      std::vector<std::byte> moved(misalign);
      moved.insert(moved.end(), w.data.begin(), w.data.end());
      w.matrix.data = moved.data() + misalign;
      const auto y = RunMatmul(*kernels, w.matrix, x, {.n_rows = 20});
      if (expected.empty()) expected = y;
      ASSERT_TRUE(SameBits(y, expected)) << kernels->isa << ' ' << misalign;
    }
  }
}

class Int8MatmulTest : public testing::TestWithParam<DType> {};

INSTANTIATE_TEST_SUITE_P(Formats, Int8MatmulTest,
                         testing::Values(DType::kQ8_0, DType::kQ4_0));

// Every code at an extreme: products that a saturating 16-bit instruction would
// clip. With scales of 1 the float sum is exact too.
TEST_P(Int8MatmulTest, ExtremeCodesAreExact) {
  constexpr std::int64_t kIn = 128;
  for (const int pattern : {0x00, 0x80, 0x7f, 0x81, 0xff, 0xf0, 0x0f, 0x88}) {
    for (const bool alternate : {false, true}) {
      TestWeights w =
          MakeWeights(GetParam(), WeightLayout::kOutIn, 19, kIn, 12);
      const int block = InfoOf(GetParam()).block_bytes;
      auto* data = const_cast<std::byte*>(w.matrix.data);
      for (std::int64_t i = 0; i < 19 * kIn / 32 * block; ++i) {
        const bool flip = alternate && i % 2 == 1;
        data[i] = static_cast<std::byte>(flip ? ~pattern : pattern);
      }
      for (std::int64_t b = 0; b < 19 * kIn / 32; ++b) {
        StoreLe(data + b * block, ToF16(1.0f).bits);
      }
      std::vector<float> weights(kIn);
      std::vector<float> x(kIn * 10);
      for (std::size_t i = 0; i < x.size(); ++i) {
        // Absmax 127: scale 1, codes equal to the values.
        x[i] = i / kIn % 2 == 0 ? 127.0f : (i % 3 == 0 ? -127.0f : 127.0f);
      }
      for (const Kernels* kernels : AvailableKernels()) {
        const auto y = RunMatmul(*kernels, w.matrix, x, {.n_rows = 10});
        for (std::int64_t n = 0; n < 19; ++n) {
          kernels->dequantize_row(w.matrix, n, weights.data());
          for (std::int64_t r = 0; r < 10; ++r) {
            double sum = 0;
            for (std::int64_t k = 0; k < kIn; ++k) {
              sum += double{weights[k]} * x[r * kIn + k];
            }
            ASSERT_EQ(y[r * 19 + n], sum) << kernels->isa << ' ' << pattern;
          }
        }
      }
    }
  }
}

TEST_P(Int8MatmulTest, PackedRowsAreTheSameBytesOnEveryIsa) {
  auto x = RandomFloats(256, 13);
  for (std::size_t i = 32; i < 64; ++i) x[i] = 0.0f;
  for (std::size_t i = 64; i < 96; ++i) x[i] *= 1e-36f;
  for (std::size_t i = 96; i < 128; ++i) x[i] *= 1e36f;
  x[130] = 2.5f * 127.0f;  // ties: 0.5, 1.5, 2.5 steps
  for (std::size_t i = 131; i < 160; ++i) {
    x[i] = 2.5f * (static_cast<float>(i) - 144.5f);
  }
  x[160] = std::numeric_limits<float>::infinity();
  x[200] = std::numeric_limits<float>::quiet_NaN();
  const std::size_t bytes = ActiveKernels().packed_row_bytes(GetParam(), 256);
  std::vector<std::byte> expected(bytes);
  AvailableKernels()[0]->pack_row(GetParam(), x.data(), 256, expected.data());
  for (const Kernels* kernels : AvailableKernels()) {
    ASSERT_EQ(kernels->packed_row_bytes(GetParam(), 256), bytes);
    std::vector<std::byte> packed(bytes);
    kernels->pack_row(GetParam(), x.data(), 256, packed.data());
    EXPECT_EQ(packed, expected) << kernels->isa;
  }
}

TEST_P(Int8MatmulTest, ANanInputIsVisibleInItsRowOnly) {
  const TestWeights w =
      MakeWeights(GetParam(), WeightLayout::kOutIn, 20, 64, 14);
  auto x = RandomFloats(64 * 3, 15);
  x[64 + 40] = std::numeric_limits<float>::quiet_NaN();
  for (const Kernels* kernels : AvailableKernels()) {
    const auto y = RunMatmul(*kernels, w.matrix, x, {.n_rows = 3});
    for (std::size_t i = 0; i < y.size(); ++i) {
      EXPECT_EQ(std::isnan(y[i]), i / 20 == 1) << kernels->isa;
    }
  }
}

TEST(Matmul, DequantizedRowsAreTheSameOnEveryIsa) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16,
                            DType::kQ8_0, DType::kQ4_0, DType::kTgInt4}) {
    const std::int64_t n_in = Quantised(dtype) ? 96 : 53;
    const TestWeights w = MakeWeights(dtype, WeightLayout::kOutIn, 7, n_in, 16);
    for (std::int64_t row = 0; row < 7; ++row) {
      std::vector<float> expected(static_cast<std::size_t>(n_in));
      AvailableKernels()[0]->dequantize_row(w.matrix, row, expected.data());
      for (const Kernels* kernels : AvailableKernels()) {
        std::vector<float> out(static_cast<std::size_t>(n_in));
        kernels->dequantize_row(w.matrix, row, out.data());
        ASSERT_TRUE(SameBits(out, expected)) << kernels->isa;
      }
    }
  }
}

}  // namespace
}  // namespace hearth
