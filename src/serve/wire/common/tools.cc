#include "serve/wire/common/tools.h"

#include "serve/wire/common/content.h"

namespace hearth::serve {
namespace {

constexpr std::size_t kNameBytesMax = 256;

Parsed<ToolDeclaration> ReadFunction(const OrderedJson& function,
                                     const std::string& path,
                                     Ignored& ignored) {
  if (!function.is_object()) return BadField(path, "must be an object.");
  ObjectReader reader(function, path, ignored);
  ToolDeclaration tool;
  tool.name = reader.Text("name").value_or("");
  tool.description = reader.Text("description").value_or("");
  tool.parameters = reader.FindObject("parameters");
  tool.strict = reader.Bool("strict", false);
  HEARTH_TRY(reader.Finish());
  return tool;
}

}  // namespace

std::string ToolSet::ModelName(const std::string& space,
                               const std::string& name) {
  return space.empty() ? name : space + "__" + name;
}

Checked ToolSet::Add(const ToolDeclaration& tool, const std::string& path) {
  if (tool.name.empty() || tool.name.size() > kNameBytesMax) {
    return BadField(
        path + ".name",
        "must be a name of 1 to " + std::to_string(kNameBytesMax) + " bytes.");
  }
  if (tools_.size() >= kToolsMax) {
    return BadField(
        path, "more than " + std::to_string(kToolsMax) + " tools. Send fewer.");
  }
  if (Has(tool.name)) {
    return BadField(path + ".name", "two tools are called \"" + tool.name +
                                        "\". Give each its own name.");
  }
  OrderedJson function = {{"name", tool.name},
                          {"description", tool.description}};
  function["parameters"] =
      tool.parameters != nullptr
          ? *tool.parameters
          : OrderedJson{{"type", "object"},
                        {"properties", OrderedJson::object()}};
  tools_.push_back({{"type", "function"}, {"function", std::move(function)}});
  names_.emplace(tool.name, tool.origin);
  strict_ = strict_ || tool.strict;
  return Done{};
}

Checked ToolSet::AddCustom(const std::string& name,
                           const std::string& description,
                           const std::string& space, const std::string& path) {
  const OrderedJson parameters = {
      {"type", "object"},
      {"properties", {{"input", {{"type", "string"}}}}},
      {"required", OrderedJson::array({"input"})}};
  return Add({.name = ModelName(space, name),
              .description = description,
              .parameters = &parameters,
              .origin = {.custom = true, .name = name, .space = space}},
             path);
}

void ToolSet::Give(WireRequest& request) const {
  if (tools_.empty()) return;
  request.dialogue.tools_json = Dump(tools_);
  request.form.strict_tools = strict_;
  for (const auto& [name, origin] : names_) {
    if (!origin.name.empty()) request.tools.emplace(name, origin);
  }
}

Checked AddChatTool(const OrderedJson& tool, const std::string& path,
                    ToolSet& tools, Ignored& ignored) {
  HEARTH_ASSIGN(const std::string type, TypeOf(tool, path));
  ObjectReader reader(tool, path, ignored);
  reader.Take({"type"});
  if (type == "function") {
    const OrderedJson* function = reader.FindObject("function");
    if (function == nullptr) reader.Fault("function", "is missing.");
    HEARTH_TRY(reader.Finish());
    HEARTH_ASSIGN(const ToolDeclaration declared,
                  ReadFunction(*function, path + ".function", ignored));
    return tools.Add(declared, path + ".function");
  }
  if (type != "custom") {
    return BadField(path + ".type", "tools of type \"" + type +
                                        "\" are not known here. Declare it as "
                                        "\"function\" or \"custom\".");
  }
  const OrderedJson* custom = reader.FindObject("custom");
  if (custom == nullptr) reader.Fault("custom", "is missing.");
  HEARTH_TRY(reader.Finish());
  ObjectReader inner(*custom, path + ".custom", ignored);
  const std::string name = inner.Text("name").value_or("");
  const std::string description = inner.Text("description").value_or("");
  inner.Say({"format"});
  HEARTH_TRY(inner.Finish());
  return tools.AddCustom(name, description, "", path + ".custom");
}

Checked Allow(const std::string& name, const std::string& path,
              const ToolSet& tools, AnswerForm& form) {
  if (!tools.Has(name)) {
    return BadField(path, "no tool is called \"" + name + "\".");
  }
  form.allowed_tools.push_back(name);
  return Done{};
}

Checked Choose(ToolUse use, const std::string& name, const std::string& path,
               const ToolSet& tools, AnswerForm& form) {
  form.tool_use = use;
  if ((use == ToolUse::kRequired || use == ToolUse::kNamed) && tools.empty()) {
    return BadField(path, "asks for a call, but there are no tools to call.");
  }
  if (use != ToolUse::kNamed) return Done{};
  form.allowed_tools.clear();
  return Allow(name, path, tools, form);
}

Checked ChooseByWord(const std::string& word, const ToolSet& tools,
                     AnswerForm& form) {
  const std::string path = "tool_choice";
  if (word == "none") return Choose(ToolUse::kNone, "", path, tools, form);
  if (word == "auto") return Done{};
  if (word == "required") {
    return Choose(ToolUse::kRequired, "", path, tools, form);
  }
  return BadField(path, "must be none, auto, required or name a tool.");
}

Checked ChooseAllowed(const std::string& mode, const std::string& path,
                      const ToolSet& tools, AnswerForm& form) {
  if (mode != "auto" && mode != "required") {
    return BadField(path, "must be auto or required.");
  }
  return Choose(mode == "auto" ? ToolUse::kAuto : ToolUse::kRequired, "",
                "tool_choice", tools, form);
}

Checked CheckToolFormat(const ToolSet& tools, const ParseContext& context) {
  if (tools.empty() || context.has_tool_format) return Done{};
  return BadField("tools",
                  "the model's chat template writes calls in no form that is "
                  "known. Whoever starts the server can name it; or send no "
                  "tools.");
}

}  // namespace hearth::serve
