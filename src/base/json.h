// JSON from outside, read without exceptions. nlohmann::json does the parsing;
// these helpers turn a missing or mistyped member into an Error that names it.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "hearth/result.h"

namespace hearth {

using Json = nlohmann::json;

// kCorrupt when `text` is not JSON or nests deeper than 64. `what` names the
// source in the message.
Result<Json> ParseJson(std::string_view text, const std::string& what);

// Member access for objects. A missing or null member gives `fallback` (or
// kCorrupt without one); a member of another type is always kCorrupt.
Result<std::int64_t> JsonInt(const Json& object, const char* key,
                             const std::string& what);
Result<std::int64_t> JsonInt(const Json& object, const char* key,
                             const std::string& what, std::int64_t fallback);
Result<double> JsonNumber(const Json& object, const char* key,
                          const std::string& what, double fallback);
Result<bool> JsonBool(const Json& object, const char* key,
                      const std::string& what, bool fallback);
Result<std::string> JsonText(const Json& object, const char* key,
                             const std::string& what);
Result<std::string> JsonText(const Json& object, const char* key,
                             const std::string& what, std::string fallback);
// nullptr when missing or null.
const Json* JsonFind(const Json& object, const char* key);

}  // namespace hearth
