#include "output/mask/argument_rules.h"

#include <algorithm>
#include <utility>

#include "base/json.h"
#include "grammar/schema/compiler.h"

namespace hearth::output {
namespace {

bool Lists(const Json& schema, const char* key, const std::string& name) {
  const Json* list = JsonFind(schema, key);
  return list != nullptr && list->is_array() &&
         std::find(list->begin(), list->end(), name) != list->end();
}

Result<ArgumentRule> CompileTag(const Tool& tool, const std::string& name,
                                const Json& schema, bool strict,
                                grammar::SchemaCompiler& compiler,
                                std::vector<std::string>& notes) {
  ArgumentRule rule;
  rule.name = name;
  rule.form = FormOf(tool, name);
  if (rule.form == TagForm::kJson) {
    HEARTH_ASSIGN(rule.value, compiler.Compile(schema, "#/properties/" + name));
    return rule;
  }
  if (!schema.is_object()) return rule;
  const Json* constants = JsonFind(schema, "enum");
  if (rule.form == TagForm::kString && constants != nullptr &&
      constants->is_array()) {
    for (const Json& one : *constants) {
      if (one.is_string()) rule.constants.push_back(one.get<std::string>());
    }
  }
  // A raw text between tags cannot be counted or matched.
  for (const char* key : {"pattern", "minLength", "maxLength", "format"}) {
    if (JsonFind(schema, key) == nullptr) continue;
    const std::string what = "the schema at #/properties/" + name + ": " + key +
                             " is not held to where a model writes tags";
    if (strict) return {Code::kUnsupported, what};
    notes.push_back("tool \"" + tool.name + "\": " + what);
  }
  return rule;
}

}  // namespace

Result<ToolRules> CompileTool(grammar::Automaton& automaton, const Tool& tool,
                              bool tags, bool strict,
                              std::vector<std::string>& notes) {
  strict = strict || tool.strict;
  Json root = tool.parameters;
  if (JsonFind(root, "type") == nullptr) root["type"] = "object";
  grammar::SchemaCompiler compiler(automaton, root, {.lenient = !strict});
  const auto named = [&](const Error& error) {
    return Error{error.code, "tool \"" + tool.name + "\": " + error.message};
  };
  ToolRules rules{.name = tool.name, .arguments = -1, .as_tags = {}};
  const Json* properties = JsonFind(root, "properties");
  // A schema that says nothing allows any object.
  if (properties == nullptr && root.size() == 1) {
    rules.arguments = compiler.rules().object();
  } else {
    auto whole = compiler.Compile(root, "#");
    if (!whole.ok()) return named(whole.error());
    rules.arguments = *whole;
  }
  if (tags && properties != nullptr && properties->is_object()) {
    for (const auto& [name, schema] : properties->items()) {
      auto rule = CompileTag(tool, name, schema, strict, compiler, notes);
      if (!rule.ok()) return named(rule.error());
      rule->required = Lists(root, "required", name);
      rules.as_tags.push_back(std::move(*rule));
    }
  }
  for (const std::string& note : compiler.TakeNotes()) {
    notes.push_back("tool \"" + tool.name + "\": " + note);
  }
  return rules;
}

}  // namespace hearth::output
