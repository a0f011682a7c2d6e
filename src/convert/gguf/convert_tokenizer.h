// The tokenizer and chat template of a model as GGUF metadata.
#pragma once

#include <vector>

#include "convert/gguf/gguf_writer.h"
#include "hearth/result.h"
#include "model/weights.h"

namespace hearth {

// The tokenizer.* keys made of a tokenizer.json: byte-level BPE with splits
// that GGUF has a name for, and sentencepiece-style BPE. What these keys cannot
// say goes into the key hearth.tokenizer, with a line in `notes`. kUnsupported,
// naming the part, for others. Nothing for a model from GGUF, whose keys are
// carried as they are (carried_keys.h).
Result<std::vector<GgufMetadata>> GgufTokenizerMetadata(
    const LoadedModel& model, std::vector<std::string>& notes);

}  // namespace hearth
