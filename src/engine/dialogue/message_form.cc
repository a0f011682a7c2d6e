#include "engine/dialogue/message_form.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/hash.h"

namespace hearth {
namespace {

Error Wrong(std::size_t i, const std::string& problem) {
  return {Code::kInvalidArgument,
          "messages[" + std::to_string(i) + "]: " + problem};
}

std::string RoleOf(const OrderedJson& message) {
  return message["role"].get<std::string>();
}

Result<std::string> TextOfParts(const OrderedJson& content, std::size_t i) {
  std::string text;
  for (const OrderedJson& part : content) {
    const bool is_text = part.is_object() && part.contains("text") &&
                         part["text"].is_string() &&
                         part.value("type", "text") == std::string("text");
    if (!is_text) return Wrong(i, "content other than text cannot be read");
    text += part["text"].get<std::string>();
  }
  return text;
}

Result<void> ReadContent(OrderedJson& message, std::size_t i) {
  if (!message.contains("content") || message["content"].is_null()) {
    message["content"] = "";
  } else if (message["content"].is_array()) {
    HEARTH_ASSIGN(const std::string text, TextOfParts(message["content"], i));
    message["content"] = text;
  } else if (!message["content"].is_string()) {
    return Wrong(i, "\"content\" is text or a list of text parts");
  }
  return {};
}

Result<void> ReadCalls(OrderedJson& message, std::size_t i) {
  if (!message.contains("tool_calls")) return {};
  OrderedJson& calls = message["tool_calls"];
  if (calls.is_null() || (calls.is_array() && calls.empty())) {
    message.erase("tool_calls");
    return {};
  }
  if (!calls.is_array()) return Wrong(i, "\"tool_calls\" is a list");
  for (OrderedJson& call : calls) {
    const bool named = call.is_object() && call.contains("function") &&
                       call["function"].is_object() &&
                       call["function"].contains("name") &&
                       call["function"]["name"].is_string();
    if (!named) return Wrong(i, "a call has no function with a name");
    OrderedJson& arguments = call["function"]["arguments"];
    if (arguments.is_null()) arguments = OrderedJson::object();
    if (arguments.is_string()) {
      const auto text = arguments.get<std::string>();
      if (text.empty()) {
        arguments = OrderedJson::object();
      } else {
        HEARTH_ASSIGN(arguments,
                      ParseOrderedJson(text, "messages[" + std::to_string(i) +
                                                 "]: a call's arguments"));
      }
    }
    if (!arguments.is_object()) {
      return Wrong(i, "a call's arguments are no JSON object");
    }
  }
  return {};
}

// 9 letters and digits that stand for any id.
std::string ShortId(const std::string& id) {
  const bool fits =
      id.size() == 9 && std::all_of(id.begin(), id.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
               (c >= '0' && c <= '9');
      });
  return fits ? id : ToHex(Sha256().Field(id).Finish()).substr(0, 9);
}

void ShortenIds(OrderedJson& message) {
  const auto shorten = [](OrderedJson& object, const char* key) {
    if (object.contains(key) && object[key].is_string()) {
      object[key] = ShortId(object[key].get<std::string>());
    }
  };
  shorten(message, "tool_call_id");
  if (!message.contains("tool_calls")) return;
  for (OrderedJson& call : message["tool_calls"]) shorten(call, "id");
}

// Puts `text` into a user's message near `at`: the next one, else the last one
// before, else one of its own.
void GiveToUser(std::vector<OrderedJson>& messages, std::size_t at,
                const std::string& text) {
  const auto is_user = [&](std::size_t i) {
    return RoleOf(messages[i]) == "user";
  };
  for (std::size_t i = at; i < messages.size(); ++i) {
    if (!is_user(i)) continue;
    messages[i]["content"] =
        text + "\n\n" + messages[i]["content"].get<std::string>();
    return;
  }
  for (std::size_t i = at; i-- > 0;) {
    if (!is_user(i)) continue;
    messages[i]["content"] =
        messages[i]["content"].get<std::string>() + "\n\n" + text;
    return;
  }
  messages.insert(messages.begin() + static_cast<std::ptrdiff_t>(at),
                  OrderedJson{{"role", "user"}, {"content", text}});
}

}  // namespace

Result<OrderedJson> ReadMessages(std::string_view messages_json) {
  HEARTH_ASSIGN(OrderedJson messages,
                ParseOrderedJson(messages_json, "messages"));
  if (!messages.is_array() || messages.empty()) {
    return {Code::kInvalidArgument,
            "messages: a list with a message is needed"};
  }
  for (std::size_t i = 0; i < messages.size(); ++i) {
    OrderedJson& message = messages[i];
    if (!message.is_object() || !message.contains("role") ||
        !message["role"].is_string()) {
      return Wrong(i, "a message is an object with a role");
    }
    HEARTH_TRY(ReadContent(message, i));
    HEARTH_TRY(ReadCalls(message, i));
  }
  return messages;
}

OrderedJson FormFor(const TemplateTraits& traits, OrderedJson messages) {
  std::vector<OrderedJson> out;
  // Texts for a user's message, and where they stood.
  std::vector<std::pair<std::size_t, std::string>> homeless;
  for (OrderedJson& message : messages) {
    if (RoleOf(message) == "developer" && !traits.developer) {
      message["role"] = "system";
    }
    const bool leading = std::all_of(
        out.begin(), out.end(),
        [](const OrderedJson& one) { return RoleOf(one) == "system"; });
    const bool fits =
        leading ? traits.system_first && out.empty() : traits.system_middle;
    if (RoleOf(message) == "system" && !fits) {
      if (leading && !out.empty() && traits.system_first) {
        // Several at the start are one.
        out.back()["content"] = out.back()["content"].get<std::string>() +
                                "\n\n" + message["content"].get<std::string>();
      } else {
        homeless.emplace_back(out.size(),
                              message["content"].get<std::string>());
      }
      continue;
    }
    if (!traits.any_call_id) ShortenIds(message);
    if (!traits.reasoning_key.empty() &&
        traits.reasoning_key != "reasoning_content" &&
        message.contains("reasoning_content")) {
      message[traits.reasoning_key] = message["reasoning_content"];
    }
    out.push_back(std::move(message));
  }
  // From the last: what stood first stands first in the same message.
  for (auto it = homeless.rbegin(); it != homeless.rend(); ++it) {
    GiveToUser(out, it->first, it->second);
  }
  OrderedJson list = OrderedJson::array();
  for (OrderedJson& message : out) list.push_back(std::move(message));
  return list;
}

Result<void> CheckTraces(const TemplateTraits& traits,
                         const OrderedJson& messages, std::string_view prompt) {
  if (!traits.user_verbatim) return {};
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (RoleOf(messages[i]) != "user") continue;
    const auto& content = messages[i]["content"].get_ref<const std::string&>();
    const std::size_t begin = content.find_first_not_of(" \n\t\r");
    if (begin == std::string::npos) continue;
    // A part tells as much as the whole, and templates trim.
    constexpr std::size_t kPartBytes = 32;
    const std::size_t end = content.find_last_not_of(" \n\t\r") + 1;
    const std::string_view part = std::string_view(content).substr(
        begin, std::min(kPartBytes, end - begin));
    if (prompt.find(part) == std::string_view::npos) {
      return Wrong(i, "the chat template leaves this message out");
    }
  }
  return {};
}

}  // namespace hearth
