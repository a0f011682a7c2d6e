// Arrays and objects.
#include <algorithm>
#include <utility>

#include "grammar/schema/compiler.h"
#include "grammar/schema/schema_error.h"

namespace hearth::grammar {

Result<Fragment> SchemaCompiler::CompileArray(const Json& schema,
                                              const std::string& place) {
  HEARTH_ASSIGN(const int n_min, Count(schema, "minItems", 0, place));
  HEARTH_ASSIGN(int n_max, Count(schema, "maxItems", -1, place));
  std::vector<StateId> first;  // the rules of the first items
  auto items = schema.find("items");
  const char* prefix_key = "prefixItems";
  if (items != schema.end() && items->is_array()) {
    // Before draft 2020-12 the list was called so, and the rest
    // additionalItems.
    prefix_key = "items";
    items = schema.find("additionalItems");
  }
  const Json* prefix = JsonFind(schema, prefix_key);
  if (prefix != nullptr) {
    if (!prefix->is_array())
      return NoSchema(place, "\"prefixItems\" is no list");
    for (std::size_t i = 0; i < prefix->size(); ++i) {
      HEARTH_ASSIGN(const StateId rule,
                    Compile((*prefix)[i], place + "/" + prefix_key + "/" +
                                              std::to_string(i)));
      first.push_back(rule);
    }
  }
  StateId rest = rules_.any();
  if (items != schema.end() && *items == Json(false)) {
    const auto n_first = static_cast<int>(first.size());
    n_max = n_max < 0 ? n_first : std::min(n_max, n_first);
  } else if (items != schema.end()) {
    HEARTH_ASSIGN(rest, Compile(*items, place + "/items"));
  }
  if (n_max >= 0 && n_max < n_min) return NoSchema(place, "no length is valid");

  Automaton& a = automaton_;
  const auto spaced = [&](StateId rule) {
    return a.Sequence(a.Call(rule), a.Call(rules_.blank()));
  };
  const Fragment open = rules_.Token("[");
  const Fragment close = a.Literal("]");
  if (n_min == 0) a.AddEmpty(open.out, close.in);
  if (n_max == 0) return Fragment{open.in, close.out};
  // The items with rules of their own, at least one; then the others.
  const int n_own =
      std::max(1, n_max < 0 ? static_cast<int>(first.size())
                            : std::min(n_max, static_cast<int>(first.size())));
  StateId at = open.out;
  for (int i = 0; i < n_own; ++i) {
    const auto index = static_cast<std::size_t>(i);
    Fragment item = spaced(index < first.size() ? first[index] : rest);
    if (i > 0) item = a.Sequence(rules_.Token(","), item);
    a.AddEmpty(at, item.in);
    at = item.out;
    if (i + 1 >= n_min && i + 1 < n_own) a.AddEmpty(at, close.in);
  }
  const StateId more = a.Close(a.Sequence(rules_.Token(","), spaced(rest)));
  const Fragment others = a.Repeat(more, std::max(0, n_min - n_own),
                                   n_max < 0 ? -1 : n_max - n_own);
  a.AddEmpty(at, others.in);
  a.AddEmpty(others.out, close.in);
  return Fragment{open.in, close.out};
}

Result<void> SchemaCompiler::AddMembers(const Json& schema,
                                        const std::string& place,
                                        ObjectShape& shape) {
  std::set<std::string> required;
  const Json* names = JsonFind(schema, "required");
  if (names != nullptr) {
    if (!names->is_array()) return NoSchema(place, "\"required\" is no list");
    for (const Json& name : *names) {
      if (!name.is_string()) return NoSchema(place, "\"required\" is no list");
      required.insert(name.get<std::string>());
    }
  }
  const Json* properties = JsonFind(schema, "properties");
  if (properties != nullptr) {
    if (!properties->is_object()) {
      return NoSchema(place, "\"properties\" is no object");
    }
    for (const auto& [name, value] : properties->items()) {
      const bool must = required.erase(name) > 0;
      if (!must && value == Json(false)) continue;
      HEARTH_ASSIGN(const StateId rule,
                    Compile(value, place + "/properties/" + name));
      shape.members.push_back({name, must, rule});
    }
  }
  // Required, and described by additionalProperties alone.
  const auto rest = schema.find("additionalProperties");
  for (const std::string& name : required) {
    StateId rule = rules_.any();
    if (rest != schema.end()) {
      HEARTH_ASSIGN(rule, Compile(*rest, place + "/additionalProperties"));
    }
    shape.members.push_back({name, true, rule});
  }
  return {};
}

Result<void> SchemaCompiler::AddOthers(const Json& schema,
                                       const std::string& place,
                                       ObjectShape& shape) {
  const auto rest = schema.find("additionalProperties");
  const Json* names = JsonFind(schema, "propertyNames");
  const bool listed = !shape.members.empty() || schema.contains("properties");
  if (rest == schema.end() && listed && !options_.open_objects) return {};
  if (rest != schema.end() && *rest == Json(false)) return {};
  shape.other_value = rules_.any();
  if (rest != schema.end()) {
    HEARTH_ASSIGN(shape.other_value,
                  Compile(*rest, place + "/additionalProperties"));
  }
  if (names != nullptr) {
    if (!shape.members.empty()) {
      return Unsupported(place, "\"propertyNames\" beside \"properties\"");
    }
    Json schema_of_name = {{"allOf", {{{"type", "string"}}, *names}}};
    HEARTH_ASSIGN(shape.other_name,
                  Compile(schema_of_name, place + "/propertyNames"));
    return {};
  }
  std::vector<std::string> known;
  for (const auto& member : shape.members) known.push_back(member.name);
  // A listed name that is forbidden is no other name either.
  const Json* properties = JsonFind(schema, "properties");
  if (properties != nullptr) {
    for (const auto& [name, value] : properties->items()) {
      if (value == Json(false)) known.push_back(name);
    }
  }
  shape.other_name = NameOtherThan(automaton_, rules_, known);
  return {};
}

Result<Fragment> SchemaCompiler::CompileObject(const Json& schema,
                                               const std::string& place) {
  ObjectShape shape;
  HEARTH_TRY(AddMembers(schema, place, shape));
  HEARTH_TRY(AddOthers(schema, place, shape));
  HEARTH_ASSIGN(shape.n_min, Count(schema, "minProperties", 0, place));
  HEARTH_ASSIGN(shape.n_max, Count(schema, "maxProperties", -1, place));
  const bool counted = shape.n_min > 0 || shape.n_max >= 0;
  if (counted && shape.other_name >= 0) {
    // An unlisted name may come twice, and then counts once.
    return Unsupported(place,
                       "a count of members where names are not all listed");
  }
  const auto n_listed = static_cast<int>(shape.members.size());
  const auto n_required = static_cast<int>(
      std::count_if(shape.members.begin(), shape.members.end(),
                    [](const auto& member) { return member.required; }));
  if (shape.n_min > n_listed ||
      (shape.n_max >= 0 && shape.n_max < std::max(n_required, shape.n_min))) {
    return NoSchema(place, "no number of members is valid");
  }
  return ObjectOf(automaton_, rules_, std::move(shape));
}

}  // namespace hearth::grammar
