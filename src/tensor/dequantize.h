// Rows of GGUF's block formats as floats, in plain C++: what each format means.
// Layouts: docs/formats/tensor-types.md.
//
// Products of scales and codes are exact in binary32; where a format has a
// minimum, its subtraction is the only rounding. The kernels read the same
// numbers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace hearth {

// The values that the 4-bit codes of IQ4_NL and IQ4_XS stand for.
inline constexpr std::array<std::int8_t, 16> kIq4Values = {
    -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
// Twice the values of the E2M1 codes of MXFP4 (bit 3 is the sign).
inline constexpr std::array<std::int8_t, 16> kMxfp4Values = {
    0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

// out[0..n) = n values from `row` on. REQUIRES: IsBlockQuantised(dtype), n a
// multiple of the block.
void DequantizeBlocks(DType dtype, const std::byte* row, std::int64_t n,
                      float* out);

}  // namespace hearth
