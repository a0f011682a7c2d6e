// A loaded model as a Hugging Face directory: config.json, model.safetensors,
// tokenizer.json and tokenizer_config.json.
#pragma once

#include <string>
#include <vector>

#include "hearth/convert.h"
#include "hearth/result.h"
#include "model/weights.h"

namespace hearth {

// Every family, and .tinygpt as a GPT-2 with the exact GELU. Block formats
// become F32, exactly. kUnsupported, naming the setting, for what config.json
// or tokenizer.json cannot say. `notes` gets a line
// for what else does not come along.
Result<void> WriteHuggingFace(const LoadedModel& model,
                              const std::string& directory,
                              const WriteOptions& options,
                              std::vector<std::string>& notes);

}  // namespace hearth
