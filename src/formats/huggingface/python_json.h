// JSON as Python's json module writes it by default: with NaN, Infinity and
// -Infinity for the numbers that JSON cannot say.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "hearth/result.h"

namespace hearth {

// As ParseJson, but for the three words, which become such numbers.
Result<Json> ParsePythonJson(std::string_view text, const std::string& what);

}  // namespace hearth
