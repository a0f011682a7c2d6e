// What two schemas have in common.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "grammar/schema/flatten.h"

namespace hearth::grammar {
namespace {

constexpr const char* kObjectKeys[] = {"properties",           "required",
                                       "additionalProperties", "propertyNames",
                                       "minProperties",        "maxProperties"};
constexpr const char* kArrayKeys[] = {"items",    "prefixItems", "minItems",
                                      "maxItems", "uniqueItems", "contains"};
constexpr const char* kStringKeys[] = {"minLength", "maxLength", "pattern",
                                       "format"};
constexpr const char* kNumberKeys[] = {"minimum", "maximum", "exclusiveMinimum",
                                       "exclusiveMaximum", "multipleOf"};

template <std::size_t n>
bool HasAny(const Json& schema, const char* const (&keys)[n]) {
  return std::any_of(std::begin(keys), std::end(keys),
                     [&](const char* key) { return schema.contains(key); });
}

std::vector<std::string> NamedTypes(const Json& type) {
  std::vector<std::string> out;
  if (type.is_string()) out.push_back(type.get<std::string>());
  if (type.is_array()) {
    for (const Json& one : type) {
      if (one.is_string()) out.push_back(one.get<std::string>());
    }
  }
  return out;
}

// The types in both lists; an integer is a number.
std::vector<std::string> CommonTypes(const std::vector<std::string>& a,
                                     const std::vector<std::string>& b) {
  const auto has = [](const std::vector<std::string>& types,
                      const std::string& type) {
    return std::find(types.begin(), types.end(), type) != types.end() ||
           (type == "integer" &&
            std::find(types.begin(), types.end(), "number") != types.end());
  };
  std::vector<std::string> out;
  for (const std::string& type : a) {
    if (has(b, type)) out.push_back(type);
  }
  for (const std::string& type : b) {
    if (has(a, type) && std::find(out.begin(), out.end(), type) == out.end()) {
      out.push_back(type);
    }
  }
  return out;
}

Json AllOf(const Json& a, const Json& b) {
  if (a == b) return a;
  return {{"allOf", Json::array({a, b})}};
}

// What additionalProperties says of a member that `schema` does not list.
Json RestOf(const Json& schema) {
  const auto it = schema.find("additionalProperties");
  return it == schema.end() ? Json(true) : *it;
}

Json MeetProperties(const Json& a, const Json& b) {
  const Json none = Json::object();
  const auto list = [&](const Json& schema) -> const Json& {
    const auto it = schema.find("properties");
    return it == schema.end() ? none : *it;
  };
  Json out = Json::object();
  const auto add = [&](const Json& from, const Json& other) {
    for (const auto& [key, value] : list(from).items()) {
      if (out.contains(key)) continue;
      const Json& twin = list(other);
      const Json with = twin.contains(key) ? twin[key] : RestOf(other);
      // A member that the other side forbids is not listed.
      if (with.is_boolean() && !with.get<bool>()) continue;
      out[key] = with.is_boolean() ? value : AllOf(value, with);
    }
  };
  add(a, b);
  add(b, a);
  return out;
}

Json Union(const Json& a, const Json& b) {
  Json out = a;
  for (const Json& one : b) {
    if (std::find(out.begin(), out.end(), one) == out.end()) out.push_back(one);
  }
  return out;
}

class Meeting {
 public:
  Meeting(const Json& a, const Json& b, const std::string& place)
      : a_(a), b_(b), place_(place) {}

  Result<Json> Run(bool& possible) {
    for (const auto& [key, value] : a_.items()) {
      if (!b_.contains(key)) out_[key] = value;
    }
    for (const auto& [key, value] : b_.items()) {
      if (!a_.contains(key)) {
        out_[key] = value;
      } else if (a_[key] == value) {
        out_[key] = value;
      } else {
        HEARTH_TRY(Join(key, a_[key], value, possible));
      }
    }
    if (a_.contains("properties") || b_.contains("properties")) {
      out_["properties"] = MeetProperties(a_, b_);
    }
    MeetConstants(possible);
    return std::move(out_);
  }

 private:
  Result<void> Join(const std::string& key, const Json& a, const Json& b,
                    bool& possible) {
    if (key == "type") {
      const auto types = CommonTypes(NamedTypes(a), NamedTypes(b));
      if (types.empty()) possible = false;
      out_[key] = types;
    } else if (key == "properties" || key == "const" || key == "enum") {
      out_[key] = a;  // done afterwards, for both sides at once
    } else if (key == "required") {
      out_[key] = Union(a, b);
    } else if (key == "additionalProperties") {
      const bool none = a == Json(false) || b == Json(false);
      out_[key] = none             ? Json(false)
                  : a.is_boolean() ? b
                  : b.is_boolean() ? a
                                   : AllOf(a, b);
    } else if (key == "items" || key == "propertyNames") {
      out_[key] = AllOf(a, b);
    } else if (key.starts_with("min") || key == "exclusiveMinimum") {
      if (!a.is_number() || !b.is_number()) return Cannot(key);
      out_[key] = std::max(a, b);
    } else if (key.starts_with("max") || key == "exclusiveMaximum") {
      if (!a.is_number() || !b.is_number()) return Cannot(key);
      out_[key] = std::min(a, b);
    } else {
      return Cannot(key);
    }
    return {};
  }

  Error Cannot(const std::string& key) const {
    return {Code::kUnsupported, "the schema at " + place_ + ": two different " +
                                    key + " for one value are not supported"};
  }

  // const and enum as the list of what both allow.
  void MeetConstants(bool& possible) {
    const auto allowed = [](const Json& schema) -> Json {
      if (schema.contains("const")) return Json::array({schema["const"]});
      const auto it = schema.find("enum");
      return it == schema.end() || !it->is_array() ? Json() : *it;
    };
    const Json a = allowed(a_);
    const Json b = allowed(b_);
    if (a.is_null() && b.is_null()) return;
    Json both = Json::array();
    for (const Json& value : a.is_null() ? b : a) {
      const bool in_b = a.is_null() || b.is_null() ||
                        std::find(b.begin(), b.end(), value) != b.end();
      const auto type = out_.find("type");
      const auto types =
          type == out_.end() ? std::vector<std::string>{} : NamedTypes(*type);
      const bool typed =
          type == out_.end() ||
          std::any_of(types.begin(), types.end(),
                      [&](const auto& name) { return HasType(value, name); });
      if (in_b && typed) both.push_back(value);
    }
    if (both.empty()) possible = false;
    out_.erase("const");
    out_["enum"] = std::move(both);
  }

  const Json& a_;
  const Json& b_;
  const std::string& place_;
  Json out_ = Json::object();
};

// Whether two plain schemas of one member exclude each other by their constants
// or types.
bool Exclude(const Json& a, const Json& b) {
  if (!a.is_object() || !b.is_object()) return false;
  for (const char* key : {"$ref", "allOf", "anyOf", "oneOf"}) {
    if (a.contains(key) || b.contains(key)) return false;
  }
  bool possible = true;
  const auto both = MeetSchemas(a, b, "", possible);
  return both.ok() && !possible;
}

}  // namespace

bool HasType(const Json& value, const std::string& type) {
  if (type == "null") return value.is_null();
  if (type == "boolean") return value.is_boolean();
  if (type == "string") return value.is_string();
  if (type == "array") return value.is_array();
  if (type == "object") return value.is_object();
  if (type == "number") return value.is_number();
  if (type != "integer" || !value.is_number()) return false;
  return value.is_number_integer() ||
         std::floor(value.get<double>()) == value.get<double>();
}

std::vector<std::string> TypesOf(const Json& schema) {
  const auto it = schema.find("type");
  if (it != schema.end()) return NamedTypes(*it);
  std::vector<std::string> out;
  if (HasAny(schema, kObjectKeys)) out.emplace_back("object");
  if (HasAny(schema, kArrayKeys)) out.emplace_back("array");
  if (HasAny(schema, kStringKeys)) out.emplace_back("string");
  if (HasAny(schema, kNumberKeys)) out.emplace_back("number");
  return out;
}

Result<Json> MeetSchemas(const Json& a, const Json& b, const std::string& place,
                         bool& possible) {
  HEARTH_ASSIGN(Json both, Meeting(a, b, place).Run(possible));
  const Json* required = JsonFind(both, "required");
  if (!possible || required == nullptr || !required->is_array()) return both;
  for (const Json& name : *required) {
    if (!name.is_string()) continue;
    const auto key = name.get<std::string>();
    const auto member = [&](const Json& schema) {
      const Json* list = JsonFind(schema, "properties");
      return list != nullptr && list->contains(key) ? (*list)[key]
                                                    : RestOf(schema);
    };
    const Json in_a = member(a);
    const Json in_b = member(b);
    if (in_a == Json(false) || in_b == Json(false) || Exclude(in_a, in_b)) {
      possible = false;
    }
  }
  return both;
}

}  // namespace hearth::grammar
