// What a tokenizer.json says and GGUF's own keys cannot: the text of the key
// "hearth.tokenizer", docs/formats/gguf.md.
#pragma once

#include <string>
#include <string_view>

#include "hearth/result.h"
#include "text/pipeline_tokenizer.h"

namespace hearth {

// Replaces the parts of `spec` that `json` has. kCorrupt, starting with `what`,
// for what is no such object; ids are checked with the rest of `spec`.
Result<void> ApplyPipeline(std::string_view json, const std::string& what,
                           TokenizerSpec& spec);

}  // namespace hearth
