// Saved conversations: docs/formats/conversation.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "chat/ordered_json.h"
#include "hearth/result.h"

namespace hearth {

struct SavedConversation {
  OrderedJson messages = OrderedJson::array();
  std::string prompt = {};             // the last rendering,
  std::string answer = {};             // what was sampled after it,
  std::vector<std::int32_t> ids = {};  // and both as ids, end marker included
  int n_turns = 0;
  // Digests in hex of what made `ids` and `prompt`; empty in files of version
  // 1, which do not say.
  std::string tokenizer = {}, chat_template = {};
};

std::string ConversationText(const SavedConversation& saved);

// kCorrupt for anything that is no conversation: members that are missing or of
// another type, messages other than objects with a role and a text, ids below
// zero. kUnsupported for a version to come. `label` starts messages.
Result<SavedConversation> ParseConversation(std::string_view text,
                                            const std::string& label);

}  // namespace hearth
