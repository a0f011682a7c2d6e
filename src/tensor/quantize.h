// Rows of floats into GGUF's number formats: F32, F16, BF16, Q4_0, Q4_1, Q5_0,
// Q5_1, Q8_0, Q2_K to Q6_K, IQ4_NL and IQ4_XS.
//
// The same bytes on every machine: plain arithmetic in a fixed order. Q4_0 to
// Q8_0 round as GGUF's reference quantiser does. For the others the format
// leaves the choice of scales open; ours searches a few candidates and takes
// the one of least weighted squared error (tensor/quantize/).
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace hearth {

// The largest magnitude that the format is for: what F16, BF16 or F32 holds,
// and for block formats, whose scales are F16, what that holds.
float LargestIn(DType dtype);

// Writes BytesOf(dtype, n) bytes. Larger values than LargestIn become the
// largest ones. REQUIRES: a format named above, n a multiple of the block,
// finite values.
// `importance`: [n], how much an error of each value counts, at least 0; or
// null. Then the searches weigh by it, and Q4_0 to Q5_1 search, too; Q8_0 and
// plain formats leave it alone.
void QuantizeRow(DType dtype, const float* x, std::int64_t n, std::byte* out,
                 const float* importance = nullptr);

}  // namespace hearth
