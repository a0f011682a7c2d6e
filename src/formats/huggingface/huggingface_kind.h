// Hugging Face directories that hold something else than plain weights of a
// model that continues text.
#pragma once

#include <string>

#include "base/json.h"
#include "formats/tensors/tensor_set.h"
#include "hearth/result.h"

namespace hearth {

// Why a class of config.json that is in no table is not supported, as in "this
// model makes embeddings ..."; empty when nothing more can be said.
std::string OtherHfClassNote(const Json& json, std::string_view hf_class);

// kUnsupported, naming the method and a tensor, for weights that are quantised
// in a form of safetensors that is not read, and for checkpoints whose text
// model is a part among others.
Result<void> RefuseOtherHfTensors(const TensorSet& tensors);

}  // namespace hearth
