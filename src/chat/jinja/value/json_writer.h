// json.dumps, as the `tojson` of chat templates calls it: no HTML escaping,
// non-ASCII characters as they are, keys in their order.
#pragma once

#include <optional>
#include <string>

#include "chat/jinja/value/value.h"
#include "hearth/result.h"

namespace hearth::jinja {

struct JsonStyle {
  std::optional<std::string> indent;  // repeated per level; none: one line
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  bool ensure_ascii = false;
  bool sort_keys = false;
};

// Appends to `out`. kInvalidArgument for a value that JSON does not have.
Result<void> WriteJson(Vm& vm, const Value& value, const JsonStyle& style,
                       std::string* out);

// The filter: tojson(ensure_ascii, indent, separators, sort_keys).
Result<Value> FilterToJson(Vm& vm, const Value& self, const Args& args);

}  // namespace hearth::jinja
