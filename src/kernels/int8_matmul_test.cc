#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <ostream>

#include "kernels/test_inputs.h"

namespace hearth {

void PrintTo(DType dtype, std::ostream* out);  // matmul_test.cc

namespace {

using namespace kernels_testing;  // NOLINT: a test's own helpers

class Int8MatmulTest : public testing::TestWithParam<DType> {};

INSTANTIATE_TEST_SUITE_P(
    Formats, Int8MatmulTest,
    testing::Values(DType::kQ8_0, DType::kQ4_0, DType::kQ4_1, DType::kQ5_0,
                    DType::kQ5_1, DType::kQ2_K, DType::kQ3_K, DType::kQ4_K,
                    DType::kQ5_K, DType::kQ6_K, DType::kIQ4_NL, DType::kIQ4_XS,
                    DType::kMXFP4, DType::kIQ2_XXS, DType::kIQ2_XS,
                    DType::kIQ2_S, DType::kIQ3_XXS, DType::kIQ3_S,
                    DType::kIQ1_S, DType::kIQ1_M, DType::kTQ1_0,
                    DType::kTQ2_0));

struct Bits {
  int first, n, step;  // bytes
  unsigned mask;
};
void ClearBits(std::byte* block, Bits bits) {
  for (int i = 0; i < bits.n; ++i) {
    block[bits.first + i * bits.step] &= static_cast<std::byte>(~bits.mask);
  }
}

// Scales and minimums of 1 (or a power of two) everywhere in a block.
void SetUnitScales(DType dtype, std::byte* block) {
  for (const std::size_t place : ScalePlaces(dtype)) {
    StoreLe(block + place, ToF16(1.0f).bits);
  }
  const auto fill = [block](std::size_t first, std::size_t n, int value) {
    std::memset(block + first, value, n);
  };
  switch (dtype) {
    case DType::kQ2_K:  // nibbles
      return fill(0, 16, 0x11);
    case DType::kQ3_K:  // 33 - 32: low nibbles, high pairs
      fill(96, 8, 0x11);
      return fill(104, 4, 0xaa);
    case DType::kQ4_K:
    case DType::kQ5_K:  // six bits: low four, low four, nibbles
      fill(4, 8, 1);
      return fill(12, 4, 0x11);
    case DType::kQ6_K:
      return fill(192, 16, 1);
    case DType::kIQ4_XS:  // 33 - 32: high pairs, low nibbles
      fill(2, 2, 0xaa);
      return fill(4, 4, 0x11);
    case DType::kMXFP4:
      return fill(0, 1, 128);
    case DType::kIQ2_XXS:  // the top halves of eight bytes
      return ClearBits(block, {.first = 9, .n = 8, .step = 8, .mask = 0xf0});
    case DType::kIQ3_XXS:
      return ClearBits(block, {.first = 69, .n = 8, .step = 4, .mask = 0xf0});
    case DType::kIQ1_S:
      return ClearBits(block, {.first = 35, .n = 8, .step = 2, .mask = 0x70});
    case DType::kIQ2_XS:
      return fill(66, 8, 0);
    case DType::kIQ2_S:
      return fill(74, 8, 0);
    case DType::kIQ3_S:
      return fill(106, 4, 0);
    case DType::kIQ1_M:  // 0x3c00 in the upper quarters of four numbers
      fill(48, 8, 0);
      fill(53, 1, 0xc0);
      return fill(55, 1, 0x30);
    default:
      return;
  }
}

// Every code at an extreme: products that a saturating 16-bit instruction would
// clip. With scales of 1 the float sum is exact too.
TEST_P(Int8MatmulTest, ExtremeCodesAreExact) {
  constexpr std::int64_t kIn = 256;
  const DTypeInfo& info = InfoOf(GetParam());
  const std::int64_t n_blocks = 19 * kIn / info.block_elements;
  for (const int pattern : {0x00, 0x80, 0x7f, 0x81, 0xff, 0xf0, 0x0f, 0x88}) {
    for (const bool alternate : {false, true}) {
      TestWeights w =
          MakeWeights(GetParam(), WeightLayout::kOutIn, 19, kIn, 12);
      auto* data = const_cast<std::byte*>(w.matrix.data);
      for (std::int64_t i = 0; i < n_blocks * info.block_bytes; ++i) {
        const bool flip = alternate && i % 2 == 1;
        data[i] = static_cast<std::byte>(flip ? ~pattern : pattern);
      }
      for (std::int64_t b = 0; b < n_blocks; ++b) {
        SetUnitScales(GetParam(), data + b * info.block_bytes);
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
      MakeWeights(GetParam(), WeightLayout::kOutIn, 20, 256, 14);
  auto x = RandomFloats(256 * 3, 15);
  x[256 + 40] = std::numeric_limits<float>::quiet_NaN();
  for (const Kernels* kernels : AvailableKernels()) {
    const auto y = RunMatmul(*kernels, w.matrix, x, {.n_rows = 3});
    for (std::size_t i = 0; i < y.size(); ++i) {
      EXPECT_EQ(std::isnan(y[i]), i / 20 == 1) << kernels->isa;
    }
  }
}

}  // namespace
}  // namespace hearth
