// A schema as the alternatives that it allows, each without $ref, allOf, anyOf
// and oneOf at its top.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "hearth/result.h"

namespace hearth::grammar {

class Flattener {
 public:
  // `root`, where local references lead, outlives the object.
  Flattener(const Json& root, bool open_objects)
      : root_(root), open_objects_(open_objects) {}

  // Objects; none when nothing can be valid. `place` names the schema in
  // messages.
  Result<std::vector<Json>> Alternatives(const Json& schema,
                                         const std::string& place);

 private:
  Result<std::vector<Json>> Expand(const Json& schema, const std::string& place,
                                   std::vector<std::string>& references);
  Result<const Json*> Resolve(const std::string& reference,
                              const std::string& place) const;
  // The schema that both describe; none when they exclude each other.
  Result<std::vector<Json>> Meet(const std::vector<Json>& a,
                                 const std::vector<Json>& b,
                                 const std::string& place);
  Result<void> CheckExclusive(const std::vector<std::vector<Json>>& branches,
                              const std::string& place);
  // Whether no text made for `made` can be valid for `other`.
  bool NeverMatches(const Json& made, const Json& other) const;

  const Json& root_;
  bool open_objects_;
};

// Both schemas as one, neither with $ref or combiners at its top. False in
// `possible`: no value fits both. kUnsupported: this pair of keywords.
Result<Json> MeetSchemas(const Json& a, const Json& b, const std::string& place,
                         bool& possible);

// The types that a schema speaks of, from "type" or else its keywords.
std::vector<std::string> TypesOf(const Json& schema);
bool HasType(const Json& value, const std::string& type);

}  // namespace hearth::grammar
