#include "serve/wire/common/conversation.h"

#include "serve/wire/json/object_reader.h"

namespace hearth::serve {

void Conversation::Add(std::string_view role, const std::string& content,
                       const std::string& name) {
  OrderedJson message = {{"role", role}, {"content", content}};
  if (!name.empty()) message["name"] = name;
  messages_.push_back(std::move(message));
}

void Conversation::Add(const AssistantTurn& turn) {
  OrderedJson message = {{"role", "assistant"}, {"content", turn.content}};
  if (!turn.reasoning.empty()) message["reasoning_content"] = turn.reasoning;
  for (const ToolCall& call : turn.calls) {
    if (!call.id.empty()) names_[call.id] = call.name;
    message["tool_calls"].push_back(
        {{"id", call.id},
         {"type", "function"},
         {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
  }
  messages_.push_back(std::move(message));
}

void Conversation::AddToolResult(const std::string& call_id,
                                 const std::string& name,
                                 const std::string& content) {
  OrderedJson message = {{"role", "tool"}, {"content", content}};
  if (!call_id.empty()) message["tool_call_id"] = call_id;
  const auto called = names_.find(call_id);
  if (!name.empty()) {
    message["name"] = name;
  } else if (called != names_.end()) {
    message["name"] = called->second;
  }
  messages_.push_back(std::move(message));
}

Parsed<OrderedJson> ParseArguments(const std::string& text,
                                   const std::string& path) {
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) {
    return OrderedJson::object();
  }
  HEARTH_ASSIGN(OrderedJson arguments, ParseBodyJson(text, path));
  if (!arguments.is_object()) {
    return BadField(path, "must be the JSON text of an object.");
  }
  return arguments;
}

OrderedJson CustomArguments(const std::string& input) {
  return {{"input", input}};
}

}  // namespace hearth::serve
