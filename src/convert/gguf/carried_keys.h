// What a model's files say besides its arithmetic and its vocabulary: licence,
// author, tags, how to sample. GGUF has it in general.*, a Hugging Face
// directory in README.md (the model card) and generation_config.json.
#pragma once

#include <string>
#include <vector>

#include "convert/gguf/gguf_writer.h"
#include "hearth/result.h"
#include "model/weights.h"

namespace hearth {

// Adds to `metadata` what the model's files say besides. From GGUF every key
// that is not there yet, byte for byte, but those about the container itself
// and, when `requantised`, those about its numbers. From a directory the
// fields of its card; adds a line to `notes` for what has no key.
Result<void> CarryKeys(const LoadedModel& model, bool requantised,
                       std::vector<GgufMetadata>& metadata,
                       std::vector<std::string>& notes);

// general.* of a GGUF as a model card; empty when there is nothing to say. Adds
// a line to `notes` for keys that a card cannot hold.
Result<std::string> ModelCardOf(const GgufFile& gguf,
                                std::vector<std::string>& notes);

}  // namespace hearth
