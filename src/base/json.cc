#include "base/json.h"

#include <cmath>

namespace hearth {
namespace {

constexpr int kDepthMax = 64;

Error Mistyped(const std::string& what, const char* key, const char* wanted) {
  return {Code::kCorrupt, what + ": member \"" + key + "\" is not " + wanted};
}

Error Missing(const std::string& what, const char* key) {
  return {Code::kCorrupt, what + ": member \"" + key + "\" is missing"};
}

Result<std::int64_t> AsInt(const Json& value, const char* key,
                           const std::string& what) {
  if (value.is_number_unsigned()) {
    const auto u = value.get<std::uint64_t>();
    if (u <= static_cast<std::uint64_t>(INT64_MAX)) {
      return static_cast<std::int64_t>(u);
    }
  } else if (value.is_number_integer()) {
    return value.get<std::int64_t>();
  } else if (value.is_number_float()) {
    const double d = value.get<double>();
    if (std::floor(d) == d && std::abs(d) < 9e15) {
      return static_cast<std::int64_t>(d);
    }
  }
  return Mistyped(what, key, "an integer");
}

}  // namespace

Result<Json> ParseJson(std::string_view text, const std::string& what) {
  // The parser would take a NUL byte for the end of the text.
  if (text.find('\0') != std::string_view::npos) {
    return {Code::kCorrupt, what + ": not valid JSON (a NUL byte)"};
  }
  bool too_deep = false;
  const auto watch = [&](int depth, Json::parse_event_t, Json&) {
    if (depth > kDepthMax) too_deep = true;
    return !too_deep;
  };
  Json value = Json::parse(text, watch, /*allow_exceptions=*/false);
  if (too_deep) {
    return {Code::kCorrupt, what + ": JSON nests deeper than 64"};
  }
  if (value.is_discarded()) return {Code::kCorrupt, what + ": not valid JSON"};
  return value;
}

const Json* JsonFind(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto it = object.find(key);
  if (it == object.end() || it->is_null()) return nullptr;
  return &*it;
}

Result<std::int64_t> JsonInt(const Json& object, const char* key,
                             const std::string& what) {
  const Json* value = JsonFind(object, key);
  if (value == nullptr) return Missing(what, key);
  return AsInt(*value, key, what);
}

Result<std::int64_t> JsonInt(const Json& object, const char* key,
                             const std::string& what, std::int64_t fallback) {
  const Json* value = JsonFind(object, key);
  if (value == nullptr) return fallback;
  return AsInt(*value, key, what);
}

Result<double> JsonNumber(const Json& object, const char* key,
                          const std::string& what, double fallback) {
  const Json* value = JsonFind(object, key);
  if (value == nullptr) return fallback;
  if (!value->is_number() || !std::isfinite(value->get<double>())) {
    return Mistyped(what, key, "a finite number");
  }
  return value->get<double>();
}

Result<bool> JsonBool(const Json& object, const char* key,
                      const std::string& what, bool fallback) {
  const Json* value = JsonFind(object, key);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) return Mistyped(what, key, "a boolean");
  return value->get<bool>();
}

Result<std::string> JsonText(const Json& object, const char* key,
                             const std::string& what) {
  const Json* value = JsonFind(object, key);
  if (value == nullptr) return Missing(what, key);
  if (!value->is_string()) return Mistyped(what, key, "a string");
  return value->get<std::string>();
}

Result<std::string> JsonText(const Json& object, const char* key,
                             const std::string& what, std::string fallback) {
  const Json* value = JsonFind(object, key);
  if (value == nullptr) return fallback;
  if (!value->is_string()) return Mistyped(what, key, "a string");
  return value->get<std::string>();
}

}  // namespace hearth
