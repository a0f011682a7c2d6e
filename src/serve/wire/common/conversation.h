// Messages in the one form that templates are given (hearth/dialogue.h).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "serve/wire/json/body_json.h"

namespace hearth::serve {

struct ToolCall {
  std::string id = {};
  std::string name = {};
  OrderedJson arguments = {};  // an object
};

struct AssistantTurn {
  std::string content = {};
  std::string reasoning = {};
  std::vector<ToolCall> calls = {};
};

class Conversation {
 public:
  // Absent and empty texts are one: a client that sends null after it was sent
  // "" means the same turn.
  void Add(std::string_view role, const std::string& content,
           const std::string& name = {});
  void Add(const AssistantTurn& turn);
  // `name` empty: that of the call it answers, which some templates want.
  void AddToolResult(const std::string& call_id, const std::string& name,
                     const std::string& content);
  int size() const { return static_cast<int>(messages_.size()); }
  std::string Json() const { return Dump(messages_); }

 private:
  OrderedJson messages_ = OrderedJson::array();
  std::map<std::string, std::string> names_;  // of calls, by their ids
};

// Arguments of a call, which most dialects send as JSON text. Empty text is an
// empty object; anything but an object is refused.
Parsed<OrderedJson> ParseArguments(const std::string& text,
                                   const std::string& path);
// The arguments of a call of a custom tool.
OrderedJson CustomArguments(const std::string& input);

}  // namespace hearth::serve
