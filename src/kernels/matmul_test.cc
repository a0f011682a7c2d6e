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
    {DType::kQ4_1, WeightLayout::kOutIn},
    {DType::kQ5_0, WeightLayout::kOutIn},
    {DType::kQ5_1, WeightLayout::kOutIn},
    {DType::kQ2_K, WeightLayout::kOutIn},
    {DType::kQ3_K, WeightLayout::kOutIn},
    {DType::kQ4_K, WeightLayout::kOutIn},
    {DType::kQ5_K, WeightLayout::kOutIn},
    {DType::kQ6_K, WeightLayout::kOutIn},
    {DType::kIQ4_NL, WeightLayout::kOutIn},
    {DType::kIQ4_XS, WeightLayout::kOutIn},
    {DType::kMXFP4, WeightLayout::kOutIn},
    // Two of the spelled-out formats, with one scale a tile and with two:
    // int8_matmul_test.cc has all.
    {DType::kIQ2_XXS, WeightLayout::kOutIn},
    {DType::kIQ1_M, WeightLayout::kOutIn},
    {DType::kTgInt4, WeightLayout::kOutIn},
    {DType::kF32, WeightLayout::kInOut},
    {DType::kF16, WeightLayout::kInOut},
    {DType::kTgInt4, WeightLayout::kInOut},
};

// n_in, or as many whole blocks as come nearest to it.
std::int64_t WholeBlocks(DType dtype, std::int64_t n_in) {
  if (!IsBlockQuantised(dtype)) return n_in;
  const std::int64_t block = InfoOf(dtype).block_elements;
  return (n_in + block - 1) / block * block;
}

struct Size {
  std::int64_t n_out;
  std::int64_t n_in;
};

// Around every boundary: lanes, groups, tiles, chunks of k.
std::vector<Size> SizesFor(DType dtype) {
  if (InfoOf(dtype).block_elements == 256) {
    return {{1, 256}, {16, 512}, {17, 256}, {50, 768}};
  }
  if (IsBlockQuantised(dtype)) {
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
  const Size size = {77, WholeBlocks(GetParam().dtype, 53)};
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
  const Size size = {33, WholeBlocks(GetParam().dtype, 333)};
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
        if (IsBlockQuantised(GetParam().dtype)) {
          tolerance += weight_sum * largest / 127 / 2;
        }
        ASSERT_NEAR(y[r * 33 + n], sum, tolerance) << kernels->isa;
      }
    }
  }
}

TEST_P(MatmulTest, WeightsMayLieAtAnyAddress) {
  const Size size = {18, WholeBlocks(GetParam().dtype, 37)};
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

TEST(Matmul, DequantizedRowsAreTheSameOnEveryIsa) {
  for (const Linear& linear : kLinears) {
    if (linear.layout != WeightLayout::kOutIn) continue;
    const DType dtype = linear.dtype;
    const std::int64_t n_in = WholeBlocks(dtype, 53);
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
