// A loaded model as a .tinygpt file, for the one forward pass that the format
// has: layer norms, learned positions, exact GELU, biases everywhere, the head
// tied to the embedding. docs/formats/tinygpt.md.
#pragma once

#include <string>

#include "hearth/convert.h"
#include "hearth/result.h"
#include "model/weights.h"

namespace hearth {

// kUnsupported, naming the difference, for a model of another forward pass.
Result<void> CheckFitsTinygpt(const LoadedModel& model);

// Writes fp16 where every number is one, else fp32, without optimizer state.
// `tokenizer_source`: the directory to name in the header; empty: a token is a
// byte. REQUIRES: CheckFitsTinygpt(model) is fine.
Result<void> ExportTinygpt(const LoadedModel& model,
                           const std::string& tokenizer_source,
                           const std::string& path,
                           const WriteOptions& options);

}  // namespace hearth
