// The tokenizer and chat template of a model as GGUF metadata.
#pragma once

#include <vector>

#include "convert/gguf/gguf_writer.h"
#include "hearth/result.h"
#include "model/weights.h"

namespace hearth {

// The tokenizer.* keys. From GGUF they are copied; from a tokenizer.json they
// are made, for byte-level BPE with a split pattern that GGUF has a name for
// and for sentencepiece-style BPE. kUnsupported, naming the part, for others.
Result<std::vector<GgufMetadata>> GgufTokenizerMetadata(
    const LoadedModel& model);

}  // namespace hearth
