// Any loaded model as a GGUF file: the names, orders and keys of that format
// whatever the model came from. Numbers keep their format; small vectors become
// F32.
#pragma once

#include <vector>

#include "convert/gguf/gguf_writer.h"
#include "hearth/result.h"
#include "model/weights.h"

namespace hearth {

struct Family;

// The family as GGUF knows it; kUnsupported when it does not.
Result<const Family*> GgufFamilyOf(const LoadedModel& model);

// general.* and <architecture>.* of the model. kUnsupported, naming the
// setting, when GGUF cannot say it.
Result<std::vector<GgufMetadata>> GgufModelMetadata(const LoadedModel& model);

// The weights under GGUF's names. They borrow the model. kUnsupported when the
// family has no GGUF form.
Result<std::vector<GgufTensorSource>> GgufModelTensors(
    const LoadedModel& model);

}  // namespace hearth
