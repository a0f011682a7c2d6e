// A loaded model as a Hugging Face directory: config.json, model.safetensors,
// tokenizer.json and tokenizer_config.json.
#pragma once

#include <string>

#include "hearth/result.h"
#include "model/weights.h"

namespace hearth {

// For llama, mistral, qwen2 and qwen3. Block formats become F32, exactly.
// kUnsupported, naming the setting, for what config.json or tokenizer.json of
// these families cannot say.
Result<void> WriteHuggingFace(const LoadedModel& model,
                              const std::string& directory);

}  // namespace hearth
