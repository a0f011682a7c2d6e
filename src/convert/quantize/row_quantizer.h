// A tensor's bytes on their way to a file, in another number format.
#pragma once

#include <vector>

#include "base/thread_pool.h"
#include "convert/gguf/gguf_writer.h"
#include "tensor/dtype.h"

namespace hearth {

// From now on `tensor` hands over its values in `to`, some rows at a time,
// which the threads of `pool` share; the bytes do not depend on how many there
// are. Its write gives kInvalidArgument, naming the tensor and the place, for
// values that are not finite or larger than `to` holds. `importance`: of each
// column of each of the tensor's matrices, or null. Borrows `pool` and
// `importance`.
void Requantize(GgufTensorSource& tensor, DType to, ThreadPool& pool,
                const std::vector<float>* importance = nullptr);

}  // namespace hearth
