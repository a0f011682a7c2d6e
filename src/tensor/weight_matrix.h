// A weight matrix where it lies: in the mapped model file.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace hearth {

enum class WeightLayout : std::uint8_t {
  kOutIn,  // row n holds the n_in weights of output n (GGUF, safetensors)
  kInOut,  // row k holds the n_out weights of input k (.tinygpt linears)
};

// y = W x, W is [n_out, n_in]. Rows are contiguous, one after the other.
// kInOut exists for kF32, kF16, kBF16 and kTgInt4; kTgInt4 in either layout. In
// kTgInt4, 64-value blocks run over the flat matrix and may straddle rows.
struct WeightMatrix {
  DType dtype = DType::kF32;
  WeightLayout layout = WeightLayout::kOutIn;
  std::int64_t n_out = 0;
  std::int64_t n_in = 0;
  const std::byte* data = nullptr;    // any alignment
  const std::byte* scales = nullptr;  // kTgInt4: f16 per 64 values
};

}  // namespace hearth
