#include "grammar/schema/flatten.h"

#include <algorithm>
#include <utility>

#include "grammar/schema/schema_error.h"

namespace hearth::grammar {
namespace {

constexpr std::size_t kAlternativesMax = 256;
constexpr std::size_t kReferencesMax = 64;

bool IsAnnotation(const std::string& key) {
  static const char* const kKeys[] = {"title",
                                      "description",
                                      "default",
                                      "examples",
                                      "example",
                                      "$comment",
                                      "deprecated",
                                      "readOnly",
                                      "writeOnly",
                                      "$schema",
                                      "$id",
                                      "id",
                                      "$defs",
                                      "definitions",
                                      "nullable",
                                      "strict",
                                      "contentMediaType",
                                      "contentEncoding",
                                      "discriminator",
                                      "externalDocs",
                                      "xml"};
  return std::any_of(std::begin(kKeys), std::end(kKeys),
                     [&](const char* known) { return key == known; }) ||
         key.starts_with("x-");
}

Json WithoutCombiners(const Json& schema) {
  Json plain = Json::object();
  for (const auto& [key, value] : schema.items()) {
    if (key != "$ref" && key != "allOf" && key != "anyOf" && key != "oneOf" &&
        !IsAnnotation(key)) {
      plain[key] = value;
    }
  }
  return plain;
}

}  // namespace

Result<const Json*> Flattener::Resolve(const std::string& reference,
                                       const std::string& place) const {
  if (!reference.starts_with('#') ||
      (reference.size() > 1 && reference[1] != '/')) {
    return {Code::kUnsupported, "the schema at " + place + ": $ref \"" +
                                    reference +
                                    "\" is not supported; references go to "
                                    "places in the same schema (#/$defs/...)"};
  }
  const Json* at = &root_;
  for (std::size_t i = 1; i < reference.size();) {
    const std::size_t end =
        std::min(reference.find('/', i + 1), reference.size());
    std::string key;
    for (std::size_t k = i + 1; k < end; ++k) {
      if (reference[k] == '~' && k + 1 < end) {
        key.push_back(reference[++k] == '0' ? '~' : '/');
      } else if (reference[k] == '%' && k + 2 < end) {
        key.push_back(static_cast<char>(
            std::strtol(reference.substr(k + 1, 2).c_str(), nullptr, 16)));
        k += 2;
      } else {
        key.push_back(reference[k]);
      }
    }
    i = end;
    if (at->is_object() && at->contains(key)) {
      at = &(*at)[key];
    } else if (at->is_array() && !key.empty() && key.size() < 7 &&
               key.find_first_not_of("0123456789") == std::string::npos &&
               std::stoul(key) < at->size()) {
      at = &(*at)[std::stoul(key)];
    } else {
      return NoSchema(place, "$ref \"" + reference + "\" leads nowhere");
    }
  }
  return at;
}

Result<std::vector<Json>> Flattener::Alternatives(const Json& schema,
                                                  const std::string& place) {
  std::vector<std::string> references;
  return Expand(schema, place, references);
}

Result<std::vector<Json>> Flattener::Meet(const std::vector<Json>& a,
                                          const std::vector<Json>& b,
                                          const std::string& place) {
  std::vector<Json> out;
  for (const Json& one : a) {
    for (const Json& other : b) {
      bool possible = true;
      HEARTH_ASSIGN(Json both, MeetSchemas(one, other, place, possible));
      if (possible) out.push_back(std::move(both));
      if (out.size() > kAlternativesMax) {
        return {Code::kUnsupported,
                "the schema at " + place + " has more than " +
                    std::to_string(kAlternativesMax) + " alternatives"};
      }
    }
  }
  return out;
}

Result<std::vector<Json>> Flattener::Expand(
    const Json& schema, const std::string& place,
    std::vector<std::string>& references) {
  if (schema.is_boolean()) {
    if (!schema.get<bool>()) return std::vector<Json>{};
    return std::vector<Json>{Json::object()};
  }
  if (!schema.is_object()) return NoSchema(place, "neither object nor boolean");
  std::vector<Json> all = {WithoutCombiners(schema)};
  const Json* reference = JsonFind(schema, "$ref");
  if (reference != nullptr) {
    if (!reference->is_string()) return NoSchema(place, "$ref is no text");
    const auto target = reference->get<std::string>();
    if (references.size() >= kReferencesMax ||
        std::find(references.begin(), references.end(), target) !=
            references.end()) {
      return NoSchema(place, "$ref \"" + target + "\" leads back to itself");
    }
    references.push_back(target);
    HEARTH_ASSIGN(const Json* const at, Resolve(target, place));
    HEARTH_ASSIGN(const std::vector<Json> there,
                  Expand(*at, target, references));
    references.pop_back();
    HEARTH_ASSIGN(all, Meet(all, there, place));
  }
  for (const char* key : {"allOf", "anyOf", "oneOf"}) {
    const auto it = schema.find(key);
    if (it == schema.end()) continue;
    if (!it->is_array() || it->empty()) {
      return NoSchema(place, std::string(key) + " is no list of schemas");
    }
    std::vector<std::vector<Json>> branches;
    for (std::size_t i = 0; i < it->size(); ++i) {
      HEARTH_ASSIGN(
          std::vector<Json> branch,
          Expand((*it)[i], place + "/" + key + "/" + std::to_string(i),
                 references));
      if (std::string_view(key) == "allOf") {
        HEARTH_ASSIGN(all, Meet(all, branch, place));
      } else {
        branches.push_back(std::move(branch));
      }
    }
    if (branches.empty()) continue;
    if (std::string_view(key) == "oneOf") {
      HEARTH_TRY(CheckExclusive(branches, place));
    }
    std::vector<Json> any;
    for (auto& branch : branches) {
      any.insert(any.end(), branch.begin(), branch.end());
    }
    HEARTH_ASSIGN(all, Meet(all, any, place));
  }
  return all;
}

Result<void> Flattener::CheckExclusive(
    const std::vector<std::vector<Json>>& branches, const std::string& place) {
  for (std::size_t i = 0; i < branches.size(); ++i) {
    for (std::size_t k = 0; k < branches.size(); ++k) {
      if (i == k) continue;
      for (const Json& made : branches[i]) {
        for (const Json& other : branches[k]) {
          if (NeverMatches(made, other)) continue;
          return {Code::kUnsupported,
                  "the schema at " + place + ": a value may fit branches " +
                      std::to_string(i) + " and " + std::to_string(k) +
                      " of oneOf at once; use anyOf, or give the branches a "
                      "required property with different constants"};
        }
      }
    }
  }
  return {};
}

bool Flattener::NeverMatches(const Json& made, const Json& other) const {
  bool possible = true;
  const auto both = MeetSchemas(made, other, "", possible);
  if (both.ok() && !possible) return true;
  const Json* required = JsonFind(other, "required");
  const Json* properties = JsonFind(made, "properties");
  const auto types = TypesOf(made);
  const bool only_object = types.size() == 1 && types.front() == "object";
  if (required == nullptr || !required->is_array() || !only_object) {
    return false;
  }
  // An object that is made without a member that the other requires.
  const auto more = made.find("additionalProperties");
  const bool closed = more != made.end()
                          ? more->is_boolean() && !more->get<bool>()
                          : !open_objects_ && properties != nullptr;
  const auto other_types = TypesOf(other);
  return closed &&
         std::any_of(required->begin(), required->end(), [&](const Json& name) {
           return name.is_string() &&
                  (properties == nullptr ||
                   !properties->contains(name.get<std::string>()));
         });
}

}  // namespace hearth::grammar
