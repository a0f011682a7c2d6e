#include "serve/wire/chat/chat_messages.h"

#include "serve/wire/common/content.h"

namespace hearth::serve {
namespace {

Parsed<ToolCall> ReadFunctionCall(ObjectReader& reader, const std::string& path,
                                  Ignored& ignored) {
  ToolCall call;
  const OrderedJson* function = reader.FindObject("function");
  if (function == nullptr) reader.Fault("function", "is missing.");
  HEARTH_TRY(reader.Finish());
  ObjectReader inner(*function, path + ".function", ignored);
  call.name = inner.Text("name").value_or("");
  if (call.name.empty()) inner.Fault("name", "is missing.");
  const OrderedJson* arguments = inner.Find("arguments");
  HEARTH_TRY(inner.Finish());
  // Some clients send the object itself.
  if (arguments != nullptr && arguments->is_object()) {
    call.arguments = *arguments;
    return call;
  }
  const bool text = arguments != nullptr && arguments->is_string();
  HEARTH_ASSIGN(call.arguments,
                ParseArguments(text ? arguments->get<std::string>() : "",
                               path + ".function.arguments"));
  return call;
}

Parsed<ToolCall> ReadCall(const OrderedJson& json, const std::string& path,
                          Ignored& ignored) {
  if (!json.is_object()) return BadField(path, "must be an object.");
  ObjectReader reader(json, path, ignored);
  const std::string id = reader.Text("id").value_or("");
  const std::string type = reader.Text("type").value_or("function");
  reader.Take({"index"});
  ToolCall call;
  if (type == "custom") {
    const OrderedJson* custom = reader.FindObject("custom");
    if (custom == nullptr) reader.Fault("custom", "is missing.");
    HEARTH_TRY(reader.Finish());
    ObjectReader inner(*custom, path + ".custom", ignored);
    call.name = inner.Text("name").value_or("");
    call.arguments = CustomArguments(inner.Text("input").value_or(""));
    HEARTH_TRY(inner.Finish());
  } else if (type == "function") {
    HEARTH_ASSIGN(call, ReadFunctionCall(reader, path, ignored));
  } else {
    return BadField(path + ".type", "must be \"function\" or \"custom\".");
  }
  call.id = id;
  return call;
}

Parsed<AssistantTurn> ReadAssistant(ObjectReader& reader,
                                    const std::string& path, Ignored& ignored) {
  AssistantTurn turn;
  const std::string refusal = reader.Text("refusal").value_or("");
  turn.reasoning = reader.Text("reasoning_content").value_or("");
  const std::string other = reader.Text("reasoning").value_or("");
  if (turn.reasoning.empty()) turn.reasoning = other;
  reader.Refuse("audio", "hearth takes text alone.");
  reader.Refuse("function_call", "is of an older form. Use tool_calls.");
  const OrderedJson* calls = reader.FindArray("tool_calls");
  HEARTH_TRY(reader.Check());
  HEARTH_ASSIGN(turn.content, TextOfContent(reader.Find("content"),
                                            path + ".content", "", ignored));
  turn.content += refusal;
  for (std::size_t i = 0; calls != nullptr && i < calls->size(); ++i) {
    HEARTH_ASSIGN(ToolCall call,
                  ReadCall((*calls)[i], At(path + ".tool_calls", i), ignored));
    turn.calls.push_back(std::move(call));
  }
  return turn;
}

Checked ReadMessage(const OrderedJson& json, const std::string& path,
                    Ignored& ignored, Conversation& conversation) {
  if (!json.is_object()) return BadField(path, "must be an object.");
  ObjectReader reader(json, path, ignored);
  const std::string role = reader.Text("role").value_or("");
  const std::string name = reader.Text("name").value_or("");
  HEARTH_TRY(reader.Check());
  if (role == "assistant") {
    HEARTH_ASSIGN(const AssistantTurn turn,
                  ReadAssistant(reader, path, ignored));
    conversation.Add(turn);
    if (!name.empty()) ignored.Add(path + ".name");
    return reader.Finish();
  }
  HEARTH_ASSIGN(const std::string text,
                TextOfContent(reader.Find("content"), path + ".content",
                              kBetweenParts, ignored));
  if (role == "tool") {
    const std::string id = reader.Text("tool_call_id").value_or("");
    conversation.AddToolResult(id, name, text);
  } else if (role == "system" || role == "developer") {
    // Templates know one of the two names.
    conversation.Add("system", text, name);
  } else if (role == "user") {
    conversation.Add("user", text, name);
  } else {
    return BadField(path + ".role",
                    role == "function"
                        ? "\"function\" is of an older form. Use \"tool\"."
                        : "must be system, developer, user, assistant or "
                          "tool.");
  }
  return reader.Finish();
}

}  // namespace

Checked ReadChatMessages(const OrderedJson& messages, Ignored& ignored,
                         Conversation& conversation) {
  for (std::size_t i = 0; i < messages.size(); ++i) {
    HEARTH_TRY(
        ReadMessage(messages[i], At("messages", i), ignored, conversation));
  }
  return Done{};
}

}  // namespace hearth::serve
