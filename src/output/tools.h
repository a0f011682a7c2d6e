// The tools of a request, as far as reading and constraining answers needs
// them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "hearth/result.h"

namespace hearth::output {

struct Tool {
  std::string name;
  Json parameters = Json::object();  // a JSON Schema
  bool strict = false;
};

// How an argument stands in a tag.
enum class TagForm : std::uint8_t { kString, kJson, kEither };

class ToolSet {
 public:
  // A list of {"type": "function", "function": {"name", "parameters",
  // "strict"}}, or of the inner objects; empty text: none. kInvalidArgument,
  // naming the tool, for anything else.
  static Result<ToolSet> Parse(std::string_view tools_json);

  const std::vector<Tool>& tools() const { return tools_; }
  const Tool* Find(std::string_view name) const;
  // Keeps these only. kInvalidArgument for a name that is not there.
  Result<void> KeepOnly(const std::vector<std::string>& names);

 private:
  std::vector<Tool> tools_;
};

TagForm FormOf(const Tool& tool, std::string_view argument);

}  // namespace hearth::output
