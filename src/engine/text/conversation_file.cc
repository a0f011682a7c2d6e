#include "engine/text/conversation_file.h"

#include <algorithm>

namespace hearth {
namespace {

constexpr char kVersionKey[] = "hearth_conversation";
constexpr std::int64_t kVersion = 2;
constexpr int kTurnsMax = 1 << 24;

// nullptr unless the member is there and of that kind.
const OrderedJson* Member(const OrderedJson& json, const char* key,
                          bool (OrderedJson::*is_kind)() const noexcept) {
  const auto it = json.find(key);
  return it != json.end() && ((*it).*is_kind)() ? &*it : nullptr;
}

bool IsMessage(const OrderedJson& message) {
  return message.is_object() &&
         Member(message, "role", &OrderedJson::is_string) != nullptr &&
         Member(message, "content", &OrderedJson::is_string) != nullptr;
}

// An integer beyond 64 bits, which the parser keeps for templates: written
// again it would be something else.
bool HoldsLargeInteger(const OrderedJson& json) {
  return json.is_binary() ||
         (json.is_structured() &&
          std::any_of(json.begin(), json.end(), HoldsLargeInteger));
}

bool IsId(const OrderedJson& id) {
  return id.is_number_unsigned() && id.get<std::uint64_t>() <= INT32_MAX;
}

// What the digests are, or "" in files that have none.
bool ReadDigest(const OrderedJson& json, const char* key, bool needed,
                std::string& out) {
  const OrderedJson* text = Member(json, key, &OrderedJson::is_string);
  if (text != nullptr) out = text->get<std::string>();
  return text != nullptr || !needed;
}

}  // namespace

std::string ConversationText(const SavedConversation& saved) {
  const OrderedJson json = {{kVersionKey, kVersion},
                            {"tokenizer", saved.tokenizer},
                            {"template", saved.chat_template},
                            {"messages", saved.messages},
                            {"prompt", saved.prompt},
                            {"answer", saved.answer},
                            {"ids", saved.ids},
                            {"turns", saved.n_turns}};
  return json.dump(1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

Result<SavedConversation> ParseConversation(std::string_view text,
                                            const std::string& label) {
  HEARTH_ASSIGN(const OrderedJson json, ParseOrderedJson(text, label));
  const auto corrupt = [&](const std::string& what) {
    return Error{Code::kCorrupt, label + ": not a saved conversation: " + what};
  };
  if (!json.is_object()) return corrupt("not an object");
  const OrderedJson* version =
      Member(json, kVersionKey, &OrderedJson::is_number_unsigned);
  if (version == nullptr) return corrupt("no version");
  if (*version > kVersion) {
    return {Code::kUnsupported,
            label + ": a conversation saved by a newer hearth"};
  }
  SavedConversation saved;
  const OrderedJson* messages =
      Member(json, "messages", &OrderedJson::is_array);
  if (messages == nullptr ||
      !std::all_of(messages->begin(), messages->end(), IsMessage)) {
    return corrupt("\"messages\" is no list of objects with role and content");
  }
  if (HoldsLargeInteger(*messages)) {
    return corrupt("\"messages\" holds an integer beyond 64 bits");
  }
  saved.messages = *messages;
  const OrderedJson* prompt = Member(json, "prompt", &OrderedJson::is_string);
  const OrderedJson* answer = Member(json, "answer", &OrderedJson::is_string);
  if (prompt == nullptr || answer == nullptr) {
    return corrupt("\"prompt\" or \"answer\" is no text");
  }
  saved.prompt = prompt->get<std::string>();
  saved.answer = answer->get<std::string>();
  const OrderedJson* ids = Member(json, "ids", &OrderedJson::is_array);
  if (ids == nullptr || !std::all_of(ids->begin(), ids->end(), IsId)) {
    return corrupt("\"ids\" is no list of token ids");
  }
  saved.ids = ids->get<std::vector<std::int32_t>>();
  const OrderedJson* turns =
      Member(json, "turns", &OrderedJson::is_number_unsigned);
  if (turns == nullptr || *turns > kTurnsMax) {
    return corrupt("\"turns\" is no count");
  }
  saved.n_turns = turns->get<int>();
  const bool needed = *version >= 2;
  if (!ReadDigest(json, "tokenizer", needed, saved.tokenizer) ||
      !ReadDigest(json, "template", needed, saved.chat_template)) {
    return corrupt("\"tokenizer\" or \"template\" is no digest");
  }
  return saved;
}

}  // namespace hearth
