// The tools of a request in the one form that templates are given, and which of
// them an answer may call.
#pragma once

#include <map>
#include <string>

#include "serve/wire/json/object_reader.h"
#include "serve/wire/request.h"

namespace hearth::serve {

constexpr std::size_t kToolsMax = 512;

// A declared tool; `parameters` null: it takes none.
struct ToolDeclaration {
  std::string name = {};
  std::string description = {};
  const OrderedJson* parameters = nullptr;
  bool strict = false;
  ToolOrigin origin = {};  // `name` empty: the model knows it by the same name
};

class ToolSet {
 public:
  // `path`: for refusals.
  Checked Add(const ToolDeclaration& tool, const std::string& path);
  // A custom tool is offered as a function of one text, `input`.
  Checked AddCustom(const std::string& name, const std::string& description,
                    const std::string& space, const std::string& path);
  bool empty() const { return tools_.empty(); }
  bool Has(const std::string& name) const { return names_.count(name) > 0; }

  // The name that the model knows a tool by.
  static std::string ModelName(const std::string& space,
                               const std::string& name);

  // Into the request: tools_json, tools, form.strict_tools.
  void Give(WireRequest& request) const;

 private:
  OrderedJson tools_ = OrderedJson::array();
  std::map<std::string, ToolOrigin> names_;
  bool strict_ = false;
};

// `{"type":"function","function":{...}}` and `{"type":"custom",...}` of
// /v1/chat/completions, /api/chat.
Checked AddChatTool(const OrderedJson& tool, const std::string& path,
                    ToolSet& tools, Ignored& ignored);

// Adds a tool to those that may be called, by the name that the model knows it
// by; `path` is where it is named.
Checked Allow(const std::string& name, const std::string& path,
              const ToolSet& tools, AnswerForm& form);

// Puts a choice into the form, or says why there is no such choice. `name`: of
// the one tool for kNamed, as the model knows it.
Checked Choose(ToolUse use, const std::string& name, const std::string& path,
               const ToolSet& tools, AnswerForm& form);

// What OpenAI's two dialects have in common: a tool_choice that is a word, and
// the mode, at `path`, of one that lists the tools that are allowed.
Checked ChooseByWord(const std::string& word, const ToolSet& tools,
                     AnswerForm& form);
Checked ChooseAllowed(const std::string& mode, const std::string& path,
                      const ToolSet& tools, AnswerForm& form);

// Tools, and no template that knows how to write calls.
Checked CheckToolFormat(const ToolSet& tools, const ParseContext& context);

}  // namespace hearth::serve
