// POST /api/generate.
#include "serve/wire/common/conversation.h"
#include "serve/wire/ollama/ollama_settings.h"

namespace hearth::serve {

Checked ParseOllamaGenerate(Draft& draft) {
  WireRequest& request = draft.request;
  ObjectReader reader(draft.body, "", draft.ignored);
  HEARTH_TRY(ReadOllamaSettings(reader, draft));
  reader.Say({"keep_alive"});
  const std::string prompt = reader.Text("prompt").value_or("");
  const std::string system = reader.Text("system").value_or("");
  request.suffix = reader.Text("suffix").value_or("");
  request.has_suffix = !request.suffix.empty();
  const bool raw = reader.Bool("raw", false);
  if (!reader.Text("template").value_or("").empty()) {
    reader.Fault("template",
                 "prompts are made with the model's own. Send raw: true and "
                 "the whole prompt.");
  }
  for (const char* name : {"context", "images"}) {
    const OrderedJson* list = reader.FindArray(name);
    if (list != nullptr && !list->empty()) {
      reader.Fault(name, name == std::string("images")
                             ? "hearth takes text alone. Leave them out."
                             : "use /api/chat: its messages are found again "
                               "without it.");
    }
  }
  request.form.tool_use = ToolUse::kNone;
  request.load_only = prompt.empty() && !request.has_suffix;
  if (raw || request.has_suffix) {
    request.raw = true;
    request.prompts = {prompt};
    if (!system.empty()) draft.ignored.Add("system");
  } else if (!request.load_only) {
    Conversation conversation;
    if (!system.empty()) conversation.Add("system", system);
    conversation.Add("user", prompt);
    request.dialogue.messages_json = conversation.Json();
  }
  return reader.Finish();
}

}  // namespace hearth::serve
