// Blocks of GGUF's formats whose codes cannot be cut out of their bytes alone,
// spelled out as plain codes and scales: IQ1, IQ2 and IQ3, which look vectors
// up in codebooks, and TQ1 and TQ2, which pack three values in less than two
// bits. Layouts: docs/formats/tensor-types.md.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace hearth {

// 256 values: value i is scales[i / 16] * (codes[i] - kSpelledBias). Scales are
// exact, and so are the products.
struct SpelledBlock {
  alignas(16) std::uint8_t codes[256];  // 0..127
  float scales[16];
};
inline constexpr int kSpelledBias = 64;

// Whether blocks of the format are spelled out.
bool IsSpelledOut(DType dtype);

// REQUIRES: IsSpelledOut(dtype); `block` is InfoOf(dtype).block_bytes long.
void SpellOut(DType dtype, const std::byte* block, SpelledBlock& out);

}  // namespace hearth
