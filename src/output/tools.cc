#include "output/tools.h"

#include <algorithm>
#include <utility>

namespace hearth::output {
namespace {

constexpr std::size_t kNameBytesMax = 256;

Error Wrong(std::size_t i, const std::string& problem) {
  return {Code::kInvalidArgument,
          "tools[" + std::to_string(i) + "]: " + problem};
}

Result<Tool> ToolOf(const Json& entry, std::size_t i) {
  if (!entry.is_object()) return Wrong(i, "an object is expected");
  const Json* inner = JsonFind(entry, "function");
  const Json& function = inner == nullptr ? entry : *inner;
  if (!function.is_object()) return Wrong(i, "\"function\" is no object");
  Tool tool;
  const Json* name = JsonFind(function, "name");
  if (name == nullptr || !name->is_string()) return Wrong(i, "has no name");
  tool.name = name->get<std::string>();
  if (tool.name.empty() || tool.name.size() > kNameBytesMax) {
    return Wrong(
        i, "its name has 1 to " + std::to_string(kNameBytesMax) + " bytes");
  }
  if (const Json* parameters = JsonFind(function, "parameters")) {
    if (!parameters->is_object()) {
      return Wrong(i, "\"parameters\" is no JSON Schema");
    }
    tool.parameters = *parameters;
  }
  const Json* strict = JsonFind(function, "strict");
  tool.strict =
      strict != nullptr && strict->is_boolean() && strict->get<bool>();
  return tool;
}

bool AllStrings(const Json& list) {
  return list.is_array() && !list.empty() &&
         std::all_of(list.begin(), list.end(),
                     [](const Json& one) { return one.is_string(); });
}

}  // namespace

Result<ToolSet> ToolSet::Parse(std::string_view tools_json) {
  ToolSet set;
  if (tools_json.empty()) return set;
  HEARTH_ASSIGN(const Json list, ParseJson(tools_json, "tools"));
  if (list.is_null()) return set;
  if (!list.is_array()) {
    return {Code::kInvalidArgument, "tools: a list is expected"};
  }
  for (std::size_t i = 0; i < list.size(); ++i) {
    HEARTH_ASSIGN(Tool tool, ToolOf(list[i], i));
    if (set.Find(tool.name) != nullptr) {
      return Wrong(i, "a second tool is named \"" + tool.name + "\"");
    }
    set.tools_.push_back(std::move(tool));
  }
  return set;
}

const Tool* ToolSet::Find(std::string_view name) const {
  const auto it =
      std::find_if(tools_.begin(), tools_.end(),
                   [&](const Tool& tool) { return tool.name == name; });
  return it == tools_.end() ? nullptr : &*it;
}

Result<void> ToolSet::KeepOnly(const std::vector<std::string>& names) {
  std::vector<Tool> kept;
  for (const std::string& name : names) {
    const Tool* tool = Find(name);
    if (tool == nullptr) {
      return {Code::kInvalidArgument,
              "no tool of the request is named \"" + name + "\""};
    }
    kept.push_back(*tool);
  }
  tools_ = std::move(kept);
  return {};
}

TagForm FormOf(const Tool& tool, std::string_view argument) {
  const Json* all = JsonFind(tool.parameters, "properties");
  if (all == nullptr || !all->is_object()) return TagForm::kEither;
  const auto it = all->find(std::string(argument));
  if (it == all->end() || !it->is_object()) return TagForm::kEither;
  const Json* type = JsonFind(*it, "type");
  if (type == nullptr) {
    const Json* constants = JsonFind(*it, "enum");
    return constants != nullptr && AllStrings(*constants) ? TagForm::kString
                                                          : TagForm::kEither;
  }
  if (type->is_string()) {
    return *type == "string" ? TagForm::kString : TagForm::kJson;
  }
  if (!type->is_array()) return TagForm::kEither;
  return std::find(type->begin(), type->end(), "string") == type->end()
             ? TagForm::kJson
             : TagForm::kEither;
}

}  // namespace hearth::output
