// The tokenizer and chat template of a model as a Hugging Face directory has
// them: the way back from convert_tokenizer.h.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "hearth/result.h"
#include "model/weights.h"

namespace hearth {

// Writes tokenizer.json and tokenizer_config.json: made from a GGUF vocabulary
// or for plain bytes, or copied from a directory, with its templates, licence,
// card and generation settings; `notes` gets a line for files that are not.
// kUnsupported, naming the part, for other vocabularies.
Result<void> WriteTokenizerFiles(const LoadedModel& model,
                                 const std::string& directory,
                                 std::vector<std::string>& notes);

Result<void> WriteJsonFile(const std::string& path, const Json& json);

}  // namespace hearth
