// The tokenizer of a Hugging Face directory: tokenizer.json with model type
// BPE, byte-level or sentencepiece-style with byte fallback.
//
// What is and is not supported: docs/tokenizers.md. A part that hearth has no
// code for is kUnsupported and named; nothing is skipped silently.
// Errors  kCorrupt (with `what` and the member) when the JSON is broken or
//         disagrees with itself; kUnsupported.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "hearth/result.h"
#include "text/tokenizer.h"

namespace hearth {

// `tokenizer_config_json` may be empty; it gives bos/eos and, for the llama
// classes, add_bos_token and add_eos_token. `what` names tokenizer.json in
// messages.
Result<std::unique_ptr<Tokenizer>> LoadTokenizerJson(
    std::string_view json_text, std::string_view tokenizer_config_json,
    const std::string& what);

}  // namespace hearth
