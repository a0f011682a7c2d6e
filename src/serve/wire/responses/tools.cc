#include "serve/wire/responses/tools.h"

#include "serve/wire/common/content.h"

namespace hearth::serve {
namespace {

Checked AddNamespace(ObjectReader& reader, const std::string& path,
                     const std::string& space, ToolSet& tools,
                     Ignored& ignored) {
  const std::string name = reader.Text("name").value_or("");
  if (name.empty()) reader.Fault("name", "is missing.");
  const OrderedJson* inner = reader.FindArray("tools");
  HEARTH_TRY(reader.Finish());
  if (!space.empty()) {
    return BadField(path, "a namespace cannot be in a namespace.");
  }
  for (std::size_t i = 0; inner != nullptr && i < inner->size(); ++i) {
    HEARTH_TRY(AddResponsesTool((*inner)[i], At(path + ".tools", i), name,
                                tools, ignored));
  }
  return Done{};
}

Parsed<std::string> ChosenName(const OrderedJson& choice,
                               const std::string& path, Ignored& ignored) {
  ObjectReader reader(choice, path, ignored);
  reader.Take({"type"});
  const std::string name = reader.Text("name").value_or("");
  const std::string space = reader.Text("namespace").value_or("");
  HEARTH_TRY(reader.Finish());
  return ToolSet::ModelName(space, name);
}

Checked ReadAllowed(const OrderedJson& choice, const ToolSet& tools,
                    Ignored& ignored, AnswerForm& form) {
  ObjectReader reader(choice, "tool_choice", ignored);
  reader.Take({"type"});
  const std::string mode = reader.Text("mode").value_or("auto");
  const OrderedJson* names = reader.FindArray("tools");
  HEARTH_TRY(reader.Finish());
  HEARTH_TRY(ChooseAllowed(mode, "tool_choice.mode", tools, form));
  for (std::size_t i = 0; names != nullptr && i < names->size(); ++i) {
    const std::string at = At("tool_choice.tools", i);
    HEARTH_ASSIGN(const std::string type, TypeOf((*names)[i], at));
    if (type != "function" && type != "custom") {
      ignored.Add(at);
      continue;
    }
    HEARTH_ASSIGN(const std::string name, ChosenName((*names)[i], at, ignored));
    HEARTH_TRY(Allow(name, at, tools, form));
  }
  if (form.allowed_tools.empty()) form.tool_use = ToolUse::kNone;
  return Done{};
}

}  // namespace

Checked AddResponsesTool(const OrderedJson& tool, const std::string& path,
                         const std::string& space, ToolSet& tools,
                         Ignored& ignored) {
  HEARTH_ASSIGN(const std::string type, TypeOf(tool, path));
  if (type != "function" && type != "custom" && type != "namespace") {
    ignored.Add(path + ":" + type);
    return Done{};
  }
  ObjectReader reader(tool, path, ignored);
  reader.Take({"type"});
  if (type == "namespace") {
    return AddNamespace(reader, path, space, tools, ignored);
  }
  const std::string name = reader.Text("name").value_or("");
  const std::string description = reader.Text("description").value_or("");
  if (name.empty()) reader.Fault("name", "is missing.");
  if (type == "custom") {
    reader.Say({"format"});
    HEARTH_TRY(reader.Finish());
    return tools.AddCustom(name, description, space, path);
  }
  ToolDeclaration declared;
  declared.name = ToolSet::ModelName(space, name);
  declared.description = description;
  declared.parameters = reader.FindObject("parameters");
  declared.strict = reader.Bool("strict", false);
  if (!space.empty()) declared.origin = {.name = name, .space = space};
  HEARTH_TRY(reader.Finish());
  return tools.Add(declared, path);
}

Checked ReadResponsesChoice(const OrderedJson* choice, const ToolSet& tools,
                            Ignored& ignored, AnswerForm& form) {
  if (tools.empty()) form.tool_use = ToolUse::kNone;
  if (choice == nullptr) return Done{};
  const std::string path = "tool_choice";
  if (choice->is_string()) {
    return ChooseByWord(choice->get<std::string>(), tools, form);
  }
  HEARTH_ASSIGN(const std::string type, TypeOf(*choice, path));
  if (type == "allowed_tools") {
    return ReadAllowed(*choice, tools, ignored, form);
  }
  if (type != "function" && type != "custom") {
    return BadField(path, "tools of type \"" + type +
                              "\" do not run here. Choose a function or a "
                              "custom tool.");
  }
  HEARTH_ASSIGN(const std::string name, ChosenName(*choice, path, ignored));
  return Choose(ToolUse::kNamed, name, path, tools, form);
}

}  // namespace hearth::serve
