#include "grammar/schema/compiler.h"

#include <algorithm>
#include <array>
#include <utility>

#include "grammar/schema/schema_error.h"
#include "grammar/text/pattern.h"

namespace hearth::grammar {
namespace {

constexpr int kCountMax = 100000;

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

}  // namespace hearth::grammar
