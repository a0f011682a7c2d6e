// JSON as templates print it: objects keep the order of their keys, and
// integers of any size keep their digits.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "hearth/result.h"

namespace hearth {

using OrderedJson = nlohmann::ordered_json;

// kCorrupt when `text` is not JSON or nests deeper than a template may see. An
// integer beyond 64 bits becomes a binary value with its digits, which is the
// one place in a value where they fit.
Result<OrderedJson> ParseOrderedJson(std::string_view text,
                                     const std::string& what);

// The digits of such an integer. REQUIRES: json.is_binary().
std::string DigitsOf(const OrderedJson& json);

}  // namespace hearth
