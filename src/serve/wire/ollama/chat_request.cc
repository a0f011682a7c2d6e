// POST /api/chat.
#include "serve/wire/common/content.h"
#include "serve/wire/common/conversation.h"
#include "serve/wire/common/tools.h"
#include "serve/wire/ollama/ollama_settings.h"

namespace hearth::serve {
namespace {

Parsed<ToolCall> ReadCall(const OrderedJson& json, const std::string& path,
                          Ignored& ignored) {
  if (!json.is_object()) return BadField(path, "must be an object.");
  ObjectReader reader(json, path, ignored);
  ToolCall call;
  call.id = reader.Text("id").value_or("");
  reader.Take({"type"});
  const OrderedJson* function = reader.FindObject("function");
  if (function == nullptr) reader.Fault("function", "is missing.");
  HEARTH_TRY(reader.Finish());
  ObjectReader inner(*function, path + ".function", ignored);
  inner.Take({"index"});
  call.name = inner.Text("name").value_or("");
  if (call.name.empty()) inner.Fault("name", "is missing.");
  const OrderedJson* arguments = inner.FindObject("arguments");
  call.arguments = arguments == nullptr ? OrderedJson::object() : *arguments;
  HEARTH_TRY(inner.Finish());
  return call;
}

Checked ReadMessage(const OrderedJson& json, const std::string& path,
                    Ignored& ignored, Conversation& conversation) {
  if (!json.is_object()) return BadField(path, "must be an object.");
  ObjectReader reader(json, path, ignored);
  const std::string role = reader.Text("role").value_or("");
  const std::string content = reader.Text("content").value_or("");
  const OrderedJson* images = reader.FindArray("images");
  if (images != nullptr && !images->empty()) {
    reader.Fault("images", "hearth takes text alone. Leave them out.");
  }
  HEARTH_TRY(reader.Check());
  if (role == "assistant") {
    AssistantTurn turn = {.content = content};
    turn.reasoning = reader.Text("thinking").value_or("");
    const OrderedJson* calls = reader.FindArray("tool_calls");
    for (std::size_t i = 0; calls != nullptr && i < calls->size(); ++i) {
      HEARTH_ASSIGN(
          ToolCall call,
          ReadCall((*calls)[i], At(path + ".tool_calls", i), ignored));
      turn.calls.push_back(std::move(call));
    }
    conversation.Add(turn);
  } else if (role == "tool") {
    std::string name = reader.Text("tool_name").value_or("");
    const std::string older = reader.Text("name").value_or("");
    conversation.AddToolResult(reader.Text("tool_call_id").value_or(""),
                               name.empty() ? older : name, content);
  } else if (role == "system" || role == "user") {
    conversation.Add(role, content);
  } else {
    return BadField(path + ".role", "must be system, user, assistant or tool.");
  }
  return reader.Finish();
}

}  // namespace

Checked ParseOllamaChat(Draft& draft) {
  WireRequest& request = draft.request;
  ObjectReader reader(draft.body, "", draft.ignored);
  HEARTH_TRY(ReadOllamaSettings(reader, draft));
  // The model is mapped as long as the server runs.
  reader.Say({"keep_alive"});
  const OrderedJson* messages = reader.FindArray("messages");
  const OrderedJson* list = reader.FindArray("tools");
  HEARTH_TRY(reader.Check());
  request.load_only = messages == nullptr || messages->empty();
  Conversation conversation;
  for (std::size_t i = 0; !request.load_only && i < messages->size(); ++i) {
    HEARTH_TRY(ReadMessage((*messages)[i], At("messages", i), draft.ignored,
                           conversation));
  }
  request.dialogue.messages_json = conversation.Json();
  ToolSet tools;
  for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
    HEARTH_TRY(AddChatTool((*list)[i], At("tools", i), tools, draft.ignored));
  }
  HEARTH_TRY(CheckToolFormat(tools, draft.context));
  if (tools.empty()) request.form.tool_use = ToolUse::kNone;
  tools.Give(request);
  return reader.Finish();
}

}  // namespace hearth::serve
