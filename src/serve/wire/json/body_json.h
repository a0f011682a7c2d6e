// JSON of a request's body: key order kept, since it is part of a prompt.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "serve/wire/wire_error.h"

namespace hearth::serve {

using OrderedJson = nlohmann::ordered_json;

constexpr int kJsonDepthMax = 100;
// Members of one object: they are searched one by one.
constexpr std::size_t kJsonMembersMax = 4096;

// Refused: what is no JSON, nests too deep, has too many members in one object
// or the same one twice, bytes that are no UTF-8, a NUL byte, a number beyond
// double. Half of a surrogate pair, which clients that cut text send, is
// U+FFFD. `param` names the source.
Parsed<OrderedJson> ParseBodyJson(std::string_view text,
                                  const std::string& param);

// One line; bytes that are no UTF-8 become U+FFFD.
std::string Dump(const OrderedJson& value);

}  // namespace hearth::serve
