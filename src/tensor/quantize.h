// Rows of floats into GGUF's block formats: Q8_0, Q4_0, Q5_0, Q4_K and Q6_K.
//
// The same bytes on every machine: plain binary32 arithmetic in a fixed order.
// Q8_0, Q4_0 and Q5_0 round as GGUF's reference quantiser does. For the K
// formats the format leaves the choice of scales open; ours searches a few
// candidates and takes the one of least weighted squared error.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace hearth {

// Whether QuantizeRow knows the format.
bool CanQuantize(DType dtype);

// Writes BytesOf(dtype, n) bytes. REQUIRES: CanQuantize(dtype), n a multiple of
// the block, values finite and no larger than an f16 holds.
void QuantizeRow(DType dtype, const float* x, std::int64_t n, std::byte* out);

}  // namespace hearth
