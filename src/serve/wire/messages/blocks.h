// Messages of /v1/messages, which are made of blocks.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "serve/wire/common/conversation.h"
#include "serve/wire/parse.h"

namespace hearth::serve {

// Where prompts are to be kept to the token.
struct Breakpoints {
  std::vector<int> messages = {};  // numbers of leading messages
  int n = 0;
  int ttl_s = 0;
};

class BlockReader {
 public:
  BlockReader(Draft& draft, Conversation& conversation)
      : draft_(draft), conversation_(conversation) {}

  // The system prompt: a text or blocks of text. The billing line that one
  // client puts at its head, and changes, is left out and named.
  Checked ReadSystem(const OrderedJson& system);
  Checked ReadMessage(const OrderedJson& message, const std::string& path);

  // A member cache_control of a block, a tool or the request.
  Checked ReadCacheControl(ObjectReader& reader);
  Breakpoints& breakpoints() { return breakpoints_; }

 private:
  struct Turn;
  Checked ReadUser(const OrderedJson& content, const std::string& path);
  Checked ReadAssistant(const OrderedJson& content, const std::string& path);
  Checked ReadThinking(ObjectReader& reader, const std::string& path,
                       AssistantTurn& turn);
  Checked ReadToolUse(ObjectReader& reader, AssistantTurn& turn);
  Checked ReadToolResult(ObjectReader& reader, const std::string& path);
  Parsed<std::string> ReadText(ObjectReader& reader);

  Draft& draft_;
  Conversation& conversation_;
  Breakpoints breakpoints_;
  bool marked_ = false;  // the block just read has a breakpoint
};

// The names in blocks `tool_reference`: deferred tools that were found.
std::set<std::string> ReferencedTools(const OrderedJson& messages);

}  // namespace hearth::serve
