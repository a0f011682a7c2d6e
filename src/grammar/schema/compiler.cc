#include "grammar/schema/compiler.h"

#include <algorithm>
#include <array>
#include <utility>

#include "grammar/text/pattern.h"

namespace hearth::grammar {
namespace {

constexpr int kCountMax = 100000;

Error Unsupported(const std::string& place, const std::string& what) {
  return {Code::kUnsupported,
          "the schema at " + place + ": " + what + " is not supported"};
}

Error NoSchema(const std::string& place, const std::string& problem) {
  return {Code::kInvalidArgument, "the schema at " + place + ": " + problem};
}

// Whether a scalar fits the keywords that an enum may stand beside.
bool Fits(const Json& value, const Json& schema) {
  const auto number = [&](const char* key, double fallback) {
    const Json* at = JsonFind(schema, key);
    return at != nullptr && at->is_number() ? at->get<double>() : fallback;
  };
  if (value.is_number()) {
    const double v = value.get<double>();
    return v >= number("minimum", v) && v <= number("maximum", v) &&
           v > number("exclusiveMinimum", v - 1) &&
           v < number("exclusiveMaximum", v + 1);
  }
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    const auto n = static_cast<double>(std::count_if(
        text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
    return n >= number("minLength", n) && n <= number("maxLength", n);
  }
  return true;
}

}  // namespace

Result<StateId> SchemaCompiler::Compile(const Json& schema,
                                        const std::string& place) {
  const std::string text = schema.dump();
  const auto it = known_.find(text);
  if (it != known_.end()) return it->second;
  if (automaton_.full()) {
    return {Code::kResourceFull, "the schema needs more than " +
                                     std::to_string(Automaton::kStatesMax) +
                                     " states"};
  }
  const StateId start = automaton_.AddState();
  known_.emplace(text, start);
  Result<Fragment> body = CompileValue(schema, place);
  if (!body.ok()) {
    if (!options_.lenient || body.error().code != Code::kUnsupported) {
      return body.error();
    }
    notes_.push_back(body.error().message + "; any JSON is allowed there");
    body = automaton_.Call(rules_.any());
  }
  automaton_.AddEmpty(start, automaton_.Close(*body));
  return start;
}

Result<Fragment> SchemaCompiler::CompileValue(const Json& schema,
                                              const std::string& place) {
  HEARTH_ASSIGN(const std::vector<Json> alternatives,
                flattener_.Alternatives(schema, place));
  if (alternatives.empty()) return NoSchema(place, "no value is valid");
  std::vector<Fragment> choices;
  for (const Json& alternative : alternatives) {
    HEARTH_ASSIGN(const Fragment one, CompilePlain(alternative, place));
    choices.push_back(one);
  }
  return automaton_.Choice(choices);
}

Result<void> SchemaCompiler::CheckKeywords(const Json& schema,
                                           const std::string& place) {
  static const std::set<std::string> kHeld = {"type",
                                              "enum",
                                              "const",
                                              "properties",
                                              "required",
                                              "items",
                                              "prefixItems",
                                              "minItems",
                                              "maxItems",
                                              "minLength",
                                              "maxLength",
                                              "pattern",
                                              "format",
                                              "minimum",
                                              "maximum",
                                              "propertyNames",
                                              "minProperties",
                                              "maxProperties",
                                              "exclusiveMinimum",
                                              "exclusiveMaximum",
                                              "additionalProperties",
                                              "additionalItems"};
  // The standard's other keywords that a value can break.
  static const std::set<std::string> kNotHeld = {"not",
                                                 "if",
                                                 "then",
                                                 "else",
                                                 "dependencies",
                                                 "dependentRequired",
                                                 "contains",
                                                 "dependentSchemas",
                                                 "minContains",
                                                 "maxContains",
                                                 "uniqueItems",
                                                 "multipleOf",
                                                 "$dynamicRef",
                                                 "$recursiveRef",
                                                 "patternProperties",
                                                 "unevaluatedItems",
                                                 "unevaluatedProperties"};
  for (const auto& [key, value] : schema.items()) {
    if (kHeld.contains(key)) continue;
    if (key == "uniqueItems" && value == Json(false)) continue;
    if (kNotHeld.contains(key)) return Unsupported(place, "\"" + key + "\"");
    notes_.push_back("the schema at " + place + ": \"" + key +
                     "\" is no keyword and has no effect");
  }
  return {};
}

Result<Fragment> SchemaCompiler::CompilePlain(const Json& schema,
                                              const std::string& place) {
  HEARTH_TRY(CheckKeywords(schema, place));
  if (schema.contains("enum") || schema.contains("const")) {
    return CompileConstants(schema, place);
  }
  const std::vector<std::string> types = TypesOf(schema);
  if (types.empty()) {
    if (schema.contains("type")) return NoSchema(place, "\"type\" names none");
    return automaton_.Call(rules_.any());
  }
  std::vector<Fragment> choices;
  for (const std::string& type : types) {
    HEARTH_ASSIGN(const Fragment one, CompileType(type, schema, place));
    choices.push_back(one);
  }
  return automaton_.Choice(choices);
}

Result<Fragment> SchemaCompiler::CompileType(const std::string& type,
                                             const Json& schema,
                                             const std::string& place) {
  if (type == "object") return CompileObject(schema, place);
  if (type == "array") return CompileArray(schema, place);
  if (type == "string") return CompileString(schema, place);
  if (type == "integer") return CompileNumber(schema, true, place);
  if (type == "number") return CompileNumber(schema, false, place);
  if (type == "boolean") return automaton_.Call(rules_.boolean());
  if (type == "null") return automaton_.Call(rules_.null());
  return NoSchema(place, "unknown type \"" + type + "\"");
}

Result<Fragment> SchemaCompiler::CompileConstants(const Json& schema,
                                                  const std::string& place) {
  Json values = Json::array();
  if (schema.contains("const")) {
    values.push_back(schema["const"]);
  } else {
    values = schema["enum"];
  }
  if (!values.is_array()) return NoSchema(place, "\"enum\" is no list");
  for (const char* key : {"pattern", "format", "properties", "items",
                          "prefixItems", "required", "additionalProperties"}) {
    if (schema.contains(key) && std::string_view(key) != "format") {
      return Unsupported(place, "\"enum\" beside \"" + std::string(key) + "\"");
    }
  }
  const std::vector<std::string> types =
      schema.contains("type") ? TypesOf(schema) : std::vector<std::string>{};
  std::vector<Fragment> choices;
  for (const Json& value : values) {
    const bool typed =
        types.empty() ||
        std::any_of(types.begin(), types.end(),
                    [&](const auto& type) { return HasType(value, type); });
    if (typed && Fits(value, schema)) {
      choices.push_back(automaton_.Literal(value.dump()));
    }
  }
  if (choices.empty()) return NoSchema(place, "no value is valid");
  return automaton_.Choice(choices);
}

Result<int> SchemaCompiler::Count(const Json& schema, const char* key,
                                  int fallback, const std::string& place) {
  const Json* at = JsonFind(schema, key);
  if (at == nullptr) return fallback;
  const std::string name = "\"" + std::string(key) + "\"";
  if (!HasType(*at, "integer") || at->get<double>() < 0) {
    return NoSchema(place, name + " is not a count");
  }
  if (at->get<double>() > kCountMax) {
    return Unsupported(place, name + " above " + std::to_string(kCountMax));
  }
  return at->get<int>();
}

Result<Fragment> SchemaCompiler::CompileString(const Json& schema,
                                               const std::string& place) {
  const Json* pattern = JsonFind(schema, "pattern");
  const Json* format = JsonFind(schema, "format");
  std::string expression;
  if (pattern != nullptr) {
    if (!pattern->is_string()) return NoSchema(place, "\"pattern\" is no text");
    expression = pattern->get<std::string>();
  } else if (format != nullptr && format->is_string()) {
    const char* known = PatternOfFormat(format->get<std::string>());
    if (known != nullptr) {
      expression = known;
    } else {
      notes_.push_back("the schema at " + place + ": the format " +
                       format->dump() + " is not enforced");
    }
  }
  const bool bounded =
      schema.contains("minLength") || schema.contains("maxLength");
  const Fragment quote = automaton_.Literal("\"");
  const Fragment end_quote = automaton_.Literal("\"");
  if (!expression.empty()) {
    if (bounded) {
      return Unsupported(place, "a length beside \"pattern\" or \"format\"");
    }
    Result<Fragment> inside = PatternInJson(automaton_, expression);
    if (!inside.ok()) {
      Error error = inside.error();
      error.message = "the schema at " + place + ": " + error.message;
      return error;
    }
    return automaton_.Sequence(quote, automaton_.Sequence(*inside, end_quote));
  }
  if (!bounded) return automaton_.Call(rules_.string());
  HEARTH_ASSIGN(const int n_min, Count(schema, "minLength", 0, place));
  HEARTH_ASSIGN(const int n_max, Count(schema, "maxLength", -1, place));
  if (n_max >= 0 && n_max < n_min) return NoSchema(place, "no length is valid");
  return automaton_.Sequence(
      quote,
      automaton_.Sequence(automaton_.Repeat(rules_.string_char(), n_min, n_max),
                          end_quote));
}

Result<Fragment> SchemaCompiler::CompileNumber(const Json& schema, bool integer,
                                               const std::string& place) {
  std::optional<Bound> low, high;
  const auto read = [&](const char* key, bool exclusive, bool is_low,
                        std::optional<Bound>& into) -> Result<void> {
    const Json* at = JsonFind(schema, key);
    if (at == nullptr) return {};
    if (!at->is_number()) {
      return NoSchema(place, "\"" + std::string(key) + "\" is no number");
    }
    HEARTH_ASSIGN(const Decimal value, Decimal::Parse(at->dump()));
    // Of two bounds the narrower one counts; of equal ones the exclusive.
    const int order = into.has_value() ? value.Compare(into->value) : 0;
    if (!into.has_value() || (is_low ? order > 0 : order < 0) ||
        (order == 0 && exclusive)) {
      into = Bound{value, exclusive};
    }
    return {};
  };
  HEARTH_TRY(read("minimum", false, true, low));
  HEARTH_TRY(read("exclusiveMinimum", true, true, low));
  HEARTH_TRY(read("maximum", false, false, high));
  HEARTH_TRY(read("exclusiveMaximum", true, false, high));
  if (!low.has_value() && !high.has_value()) {
    return automaton_.Call(integer ? rules_.integer() : rules_.number());
  }
  const Result<Fragment> range = NumberInRange(automaton_, low, high, integer);
  if (!range.ok()) return NoSchema(place, range.error().message);
  return *range;
}

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
