// The tensors of a model in the formats of a mixture.
#pragma once

#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "convert/gguf/gguf_writer.h"
#include "convert/imatrix/importance_of_tensors.h"
#include "convert/quantize/mixture.h"

namespace hearth {

// Whether a format's search weighs errors by importance.
bool UsesImportance(DType dtype);

// Changes what `tensors` will write; `importance` (or null) guides it. Returns
// what a reader should know, one line each: tensors that get another format
// than the mixture has for them, and formats that were quantised before.
// Tensors that keep a plain format are still looked at for values that are not
// finite. Borrows `pool` and `importance`.
std::vector<std::string> QuantizeTensors(const QuantizeType& type,
                                         const MixtureFacts& facts,
                                         std::vector<GgufTensorSource>& tensors,
                                         ThreadPool& pool,
                                         const ImportanceOfTensors* importance);

}  // namespace hearth
