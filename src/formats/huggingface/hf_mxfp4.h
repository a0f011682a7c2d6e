// MXFP4 as Hugging Face stores it: two tensors of bytes for one matrix.
//
//   x_blocks  U8 [..., n / 32, 16]: codes 2i and 2i + 1 in the low and the high
//             nibble of byte i
//   x_scales  U8 [..., n / 32]: exponents, 2^(s - 127)
// GGUF's blocks (docs/formats/tensor-types.md) hold the same numbers with the
// exponent in front and code i + 16 above code i, and these are what the
// kernels read.
#pragma once

#include "formats/tensors/tensor_set.h"
#include "hearth/result.h"
#include "model/weights.h"

namespace hearth {

// Puts one tensor "x" of type MXFP4 in the place of every such pair; its bytes
// are made here and owned by `model`. This reads the weights, unlike the rest
// of loading. kCorrupt when the two do not go together.
Result<void> JoinMxfp4(TensorSet& tensors, LoadedModel& model);

}  // namespace hearth
