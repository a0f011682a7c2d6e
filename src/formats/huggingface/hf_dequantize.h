// FP8 and NVFP4 weights as Hugging Face directories store them: a tensor of
// codes and one or two of scales for one matrix.
//
//   FP8    x F8_E4M3 [..., n_out, n_in], x_scale_inv or x_scale: the factor of
//          a block, a row or the whole
//   NVFP4  x or x_packed U8 [..., n_out, n_in / 2]: codes 2i and 2i + 1 in the
//          low and the high nibble of byte i; x_scale F8_E4M3 [..., n_out,
//          n_in / 16]; x_scale_2 (multiplies) or x_global_scale (divides) F32
#pragma once

#include "formats/huggingface/hf_quantization.h"
#include "formats/tensors/tensor_set.h"
#include "model/weights.h"

namespace hearth {

// Puts one BF16 tensor "x" in the place of every such group: products in
// binary32, rounded once. Its bytes are made here and owned by `model`; this
// reads the weights, unlike the rest of loading. Scales of activations and of
// keys and values, which hearth does not quantise so, are dropped. kCorrupt
// when the tensors of a group do not go together.
Result<void> DequantizeHf(const HfQuantization& quantization,
                          TensorSet& tensors, LoadedModel& model);

}  // namespace hearth
