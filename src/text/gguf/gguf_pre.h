// The named pre-tokenizers of byte-level GGUF vocabularies
// (tokenizer.ggml.pre): which patterns split the text, one after the other.
// Errors  kUnsupported, naming it, for a name that is not in the table.
// Source  the names are llama.cpp's; the patterns are those of the models'
//         own tokenizer.json files where the two differ in spelling.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "hearth/result.h"

namespace hearth {

struct GgufPre {
  std::span<const std::string_view> patterns;  // each isolates its matches
  bool ignore_merges = false;
  bool add_bos = false;  // when the file does not say
};

Result<GgufPre> FindGgufPre(const std::string& name, const std::string& what);

}  // namespace hearth
