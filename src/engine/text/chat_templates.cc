#include "engine/text/chat_templates.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/file.h"
#include "base/json.h"
#include "formats/gguf/gguf.h"
#include "formats/huggingface/python_json.h"

namespace hearth {
namespace {

constexpr std::size_t kTemplateBytesMax = std::size_t{64} << 20;
constexpr char kDefault[] = "default";
constexpr std::string_view kGgufKey = "tokenizer.chat_template";

using Templates = std::vector<NamedTemplate>;

Result<Templates> OfGguf(const GgufFile& gguf) {
  Templates templates;
  HEARTH_ASSIGN(const std::string_view text, gguf.Text(kGgufKey, ""));
  if (!text.empty()) {
    templates.push_back({kDefault, std::string(text), gguf.label()});
  }
  const std::string prefix = std::string(kGgufKey) + ".";
  for (const GgufEntry& entry : gguf.entries()) {
    if (!entry.key.starts_with(prefix)) continue;
    HEARTH_ASSIGN(const std::string_view other, gguf.Text(entry.key));
    templates.push_back({std::string(entry.key.substr(prefix.size())),
                         std::string(other), gguf.label()});
  }
  return templates;
}

// Nothing when there is no such file.
Result<std::optional<std::string>> ReadOptional(const std::string& path) {
  auto text = ReadTextFile(path, kTemplateBytesMax);
  if (text.ok()) return std::optional(std::move(*text));
  if (text.error().code == Code::kNotFound) return std::optional<std::string>();
  return text.error();
}

// The file chat_template.jinja and those beside it.
Result<Templates> OfJinjaFiles(const std::string& directory) {
  Templates templates;
  const std::string path = directory + "/chat_template.jinja";
  HEARTH_ASSIGN(auto text, ReadOptional(path));
  if (!text.has_value()) return templates;
  templates.push_back({kDefault, std::move(*text), path});
  std::vector<std::filesystem::path> others;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(
           directory + "/additional_chat_templates", ignored)) {
    if (entry.path().extension() == ".jinja") others.push_back(entry.path());
  }
  std::sort(others.begin(), others.end());
  for (const auto& other : others) {
    HEARTH_ASSIGN(auto more, ReadOptional(other.string()));
    if (!more.has_value()) continue;
    templates.push_back(
        {other.stem().string(), std::move(*more), other.string()});
  }
  return templates;
}

// "chat_template" of a JSON file: a text, or a list of {"name", "template"}.
Result<Templates> OfJsonFile(const std::string& path) {
  Templates templates;
  HEARTH_ASSIGN(const auto text, ReadOptional(path));
  if (!text.has_value()) return templates;
  HEARTH_ASSIGN(const Json config, ParsePythonJson(*text, path));
  const Json* value = JsonFind(config, "chat_template");
  if (value == nullptr) return templates;
  if (value->is_string()) {
    templates.push_back({kDefault, value->get<std::string>(), path});
    return templates;
  }
  const Error wrong{Code::kCorrupt,
                    path +
                        ": member \"chat_template\" is neither a text nor "
                        "a list of objects with name and template"};
  if (!value->is_array()) return wrong;
  for (const Json& item : *value) {
    const Json* name = JsonFind(item, "name");
    const Json* source = JsonFind(item, "template");
    if (name == nullptr || !name->is_string() || source == nullptr ||
        !source->is_string()) {
      return wrong;
    }
    templates.push_back(
        {name->get<std::string>(), source->get<std::string>(), path});
  }
  return templates;
}

}  // namespace

Result<std::vector<NamedTemplate>> ReadChatTemplates(const LoadedModel& model) {
  if (model.tokenizer_source == TokenizerSource::kGguf) {
    return OfGguf(*model.gguf);
  }
  if (model.tokenizer_source != TokenizerSource::kDirectory) {
    return Templates();
  }
  HEARTH_ASSIGN(Templates templates, OfJinjaFiles(model.tokenizer_dir));
  for (const char* name : {"tokenizer_config.json", "chat_template.json"}) {
    if (!templates.empty()) break;
    HEARTH_ASSIGN(templates, OfJsonFile(model.tokenizer_dir + "/" + name));
  }
  return templates;
}

Result<const NamedTemplate*> PickChatTemplate(
    std::span<const NamedTemplate> templates, bool with_tools,
    const std::string& what) {
  const auto named = [&](std::string_view name) -> const NamedTemplate* {
    for (const NamedTemplate& one : templates) {
      if (one.name == name) return &one;
    }
    return nullptr;
  };
  if (const NamedTemplate* one = with_tools ? named("tool_use") : nullptr) {
    return one;
  }
  const NamedTemplate* usual = named(kDefault);
  if (usual != nullptr || templates.empty()) return usual;
  std::string names;
  for (const NamedTemplate& one : templates) {
    names += (names.empty() ? "" : ", ") + one.name;
  }
  return {Code::kNotFound,
          what + ": none of its chat templates (" + names +
              ") is named \"default\"; give the one that is meant as a file"};
}

}  // namespace hearth
