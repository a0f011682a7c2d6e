// Text and files that commands read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hearth/result.h"

namespace hearth::cli {

// The whole of a file; "-" is standard input.
Result<std::string> ReadInput(const std::string& path);

// The same for a prompt, which must be UTF-8: what is not would silently become
// replacement characters. kInvalidArgument names the byte and the likely cause.
Result<std::string> ReadPrompt(const std::string& path);

// Token ids: a JSON array of integers, or an object with such a member
// "input_ids" or "ids".
Result<std::vector<std::int32_t>> ParseIds(const std::string& text,
                                           const std::string& what);

}  // namespace hearth::cli
