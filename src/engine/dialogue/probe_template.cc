#include <string>

#include "engine/dialogue/message_form.h"

namespace hearth {
namespace {

constexpr const char* kUser = "Sentinel \"oak\" & <elm>\nof a user";
constexpr const char* kAnswer = "Sentinel birch of an answer";
constexpr const char* kSystem = "Sentinel maple of a system";
constexpr const char* kLastUser = "Sentinel willow of a user";

OrderedJson Message(const char* role, const char* content) {
  return {{"role", role}, {"content", content}};
}

class Probe {
 public:
  Probe(const ChatTemplate& chat, const RenderOptions& options)
      : chat_(chat), options_(options) {}

  // Empty when the template refuses.
  std::string Rendered(const OrderedJson& messages) const {
    auto text = chat_.Render(messages, nullptr, options_);
    return text.ok() ? std::move(*text) : std::string();
  }

  // Whether all of `parts` are in the rendering, in this order.
  bool Keeps(const OrderedJson& messages,
             std::initializer_list<const char*> parts) const {
    const std::string text = Rendered(messages);
    std::size_t from = 0;
    for (const char* part : parts) {
      from = text.find(part, from);
      if (from == std::string::npos) return false;
    }
    return true;
  }

 private:
  const ChatTemplate& chat_;
  const RenderOptions& options_;
};

OrderedJson WithCall(const char* id) {
  const OrderedJson call = {
      {"id", id},
      {"type", "function"},
      {"function", {{"name", "look"}, {"arguments", OrderedJson::object()}}}};
  OrderedJson answer = Message("assistant", "");
  answer["tool_calls"] = OrderedJson::array({call});
  OrderedJson result = Message("tool", "done");
  result["tool_call_id"] = id;
  result["name"] = "look";
  return OrderedJson::array({Message("user", kUser), answer, result});
}

// The member of a message that a template reads thoughts from.
std::string ReasoningKeyOf(const std::string& source) {
  for (const char* key : {"reasoning_content", "thinking", "reasoning"}) {
    for (const std::string& spelling :
         {std::string(".") + key, std::string("'") + key + "'",
          std::string("\"") + key + "\""}) {
      if (source.find(spelling) != std::string::npos) return key;
    }
  }
  return "";
}

}  // namespace

TemplateTraits ProbeTemplate(const ChatTemplate& chat,
                             const RenderOptions& options) {
  const Probe probe(chat, options);
  const auto with_role = [](const char* role) {
    return OrderedJson::array({Message(role, kSystem), Message("user", kUser)});
  };
  const auto in_middle = [](const char* role) {
    return OrderedJson::array(
        {Message("user", "Hello."), Message("assistant", kAnswer),
         Message(role, kSystem), Message("user", kLastUser)});
  };
  TemplateTraits traits;
  traits.system_first = probe.Keeps(with_role("system"), {kSystem});
  traits.system_middle =
      traits.system_first &&
      probe.Keeps(in_middle("system"), {kAnswer, kSystem, kLastUser});
  traits.developer =
      probe.Keeps(with_role("developer"), {kSystem}) &&
      probe.Keeps(in_middle("developer"), {kAnswer, kSystem, kLastUser});
  traits.user_verbatim =
      probe.Keeps(OrderedJson::array({Message("user", kUser)}), {kUser});
  // Only a template that takes short ids and refuses long ones is about ids.
  traits.any_call_id =
      !probe.Rendered(WithCall("call_oak_0123456789")).empty() ||
      probe.Rendered(WithCall("abcdefgh1")).empty();
  traits.reasoning_key = ReasoningKeyOf(chat.source());
  return traits;
}

}  // namespace hearth
