// POST /v1/messages and /v1/messages/count_tokens.
#include <algorithm>
#include <climits>

#include "serve/wire/common/content.h"
#include "serve/wire/common/settings.h"
#include "serve/wire/common/tools.h"
#include "serve/wire/messages/blocks.h"
#include "serve/wire/messages/notes.h"

namespace hearth::serve {
namespace {

// A tool in the request: its name when it goes into the prompt.
Checked ReadTool(const OrderedJson& json, const std::string& path,
                 const std::set<std::string>& referenced, BlockReader& blocks,
                 ToolSet& tools, Ignored& ignored) {
  if (!json.is_object()) return BadField(path, "must be an object.");
  ObjectReader reader(json, path, ignored);
  const std::string type = reader.Text("type").value_or("custom");
  HEARTH_TRY(reader.Check());
  if (type != "custom") {
    // A tool that its maker's server runs, or whose schema only its maker's
    // models know.
    ignored.Add(path + ":" + type);
    return Done{};
  }
  HEARTH_TRY(blocks.ReadCacheControl(reader));
  ToolDeclaration tool;
  tool.name = reader.Text("name").value_or("");
  tool.description = reader.Text("description").value_or("");
  tool.parameters = reader.FindObject("input_schema");
  tool.strict = reader.Bool("strict", false);
  const bool deferred = reader.Bool("defer_loading", false);
  // Arguments are always streamed as they come.
  reader.Take({"eager_input_streaming"});
  HEARTH_TRY(reader.Finish());
  if (deferred && referenced.count(tool.name) == 0) {
    ignored.Add(path);
    return Done{};
  }
  return tools.Add(tool, path);
}

Checked ReadToolChoice(const OrderedJson* choice, const ToolSet& tools,
                       Ignored& ignored, AnswerForm& form) {
  if (tools.empty()) form.tool_use = ToolUse::kNone;
  if (choice == nullptr) return Done{};
  const std::string path = "tool_choice";
  HEARTH_ASSIGN(const std::string type, TypeOf(*choice, path));
  ObjectReader reader(*choice, path, ignored);
  reader.Take({"type"});
  form.parallel_calls = !reader.Bool("disable_parallel_tool_use", false);
  const std::string name = reader.Text("name").value_or("");
  HEARTH_TRY(reader.Finish());
  if (type == "auto") return Done{};
  if (type == "none") return Choose(ToolUse::kNone, "", path, tools, form);
  if (type == "any") return Choose(ToolUse::kRequired, "", path, tools, form);
  if (type == "tool") return Choose(ToolUse::kNamed, name, path, tools, form);
  return BadField(path + ".type", "must be auto, any, tool or none.");
}

Checked ReadThinking(const OrderedJson& thinking, Draft& draft,
                     TemplateVariables& variables, MessagesNotes& notes) {
  HEARTH_ASSIGN(const std::string type, TypeOf(thinking, "thinking"));
  ObjectReader reader(thinking, "thinking", draft.ignored);
  reader.Take({"type"});
  const auto budget = reader.Integer("budget_tokens", 1, INT_MAX);
  const std::string display = reader.Text("display").value_or("summarized");
  if (display != "summarized" && display != "omitted") {
    draft.ignored.Add("thinking.display");
  }
  HEARTH_TRY(reader.Finish());
  notes.omit_thinking = display == "omitted";
  if (type == "disabled") {
    variables.Think(false, "thinking");
    return Done{};
  }
  if (type != "enabled" && type != "adaptive" && type != "between_tools") {
    return BadField("thinking.type",
                    "must be enabled, adaptive, between_tools or disabled.");
  }
  variables.Think(true, "thinking");
  if (budget) {
    draft.request.form.reasoning_tokens_max = static_cast<int>(*budget);
  }
  return Done{};
}

Checked ReadOutput(ObjectReader& reader, Draft& draft,
                   TemplateVariables& variables) {
  // The older place of `format`.
  const OrderedJson* format = reader.FindObject("output_format");
  std::string path = "output_format";
  if (const OrderedJson* output = reader.FindObject("output_config")) {
    ObjectReader inner(*output, "output_config", draft.ignored);
    if (const auto effort = inner.Text("effort")) {
      variables.Effort(*effort, "output_config.effort");
    }
    if (const OrderedJson* newer = inner.FindObject("format")) {
      format = newer;
      path = "output_config.format";
    }
    HEARTH_TRY(inner.Finish());
  }
  HEARTH_TRY(reader.Check());
  if (format == nullptr) return Done{};
  return ReadFormat(*format, path, false, draft.ignored, draft.request.form);
}

Checked ReadPrompt(ObjectReader& reader, Draft& draft, MessagesNotes& notes) {
  const OrderedJson* messages = reader.FindArray("messages");
  const OrderedJson* list = reader.FindArray("tools");
  if (messages == nullptr || messages->empty()) {
    reader.Fault("messages", "must be an array with a message at least.");
  }
  HEARTH_TRY(reader.Check());
  Conversation conversation;
  BlockReader blocks(draft, conversation);
  ToolSet tools;
  const std::set<std::string> referenced = ReferencedTools(*messages);
  for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
    HEARTH_TRY(ReadTool((*list)[i], At("tools", i), referenced, blocks, tools,
                        draft.ignored));
  }
  const bool tools_marked = blocks.breakpoints().n > 0;
  HEARTH_TRY(CheckToolFormat(tools, draft.context));
  if (const OrderedJson* system = reader.Find("system")) {
    HEARTH_TRY(blocks.ReadSystem(*system));
  }
  notes.system = Sha256().Field(conversation.Json()).Finish();
  // Tools are part of what a template puts before the first message's end.
  if (tools_marked && conversation.size() > 0) {
    blocks.breakpoints().messages.push_back(1);
  }
  for (std::size_t i = 0; i < messages->size(); ++i) {
    HEARTH_TRY(blocks.ReadMessage((*messages)[i], At("messages", i)));
  }
  const int before = blocks.breakpoints().n;
  HEARTH_TRY(blocks.ReadCacheControl(reader));
  WireRequest& request = draft.request;
  request.breakpoints = blocks.breakpoints().messages;
  if (blocks.breakpoints().n > before) {
    request.breakpoints.push_back(conversation.size());
  }
  std::sort(request.breakpoints.begin(), request.breakpoints.end());
  request.breakpoints.erase(
      std::unique(request.breakpoints.begin(), request.breakpoints.end()),
      request.breakpoints.end());
  request.breakpoint_ttl_s = std::max(300, blocks.breakpoints().ttl_s);
  request.dialogue.messages_json = conversation.Json();
  HEARTH_TRY(ReadToolChoice(reader.Find("tool_choice"), tools, draft.ignored,
                            request.form));
  tools.Give(request);
  notes.tools = Sha256().Field(request.dialogue.tools_json).Finish();
  return Done{};
}

void ReadSampling(ObjectReader& reader, WireRequest& request) {
  request.sampling.temperature = reader.Number("temperature", 0, 1);
  request.sampling.top_p = reader.Number("top_p", 0, 1);
  if (const auto top_k = reader.Integer("top_k", 0, INT_MAX)) {
    request.sampling.top_k = static_cast<int>(*top_k);
  }
  ReadStop(reader, "stop_sequences", request);
}

}  // namespace

Checked ParseMessages(Draft& draft) {
  WireRequest& request = draft.request;
  request.count_only = draft.path.ends_with("/count_tokens");
  ObjectReader reader(draft.body, "", draft.ignored);
  HEARTH_TRY(ReadModel(reader, draft.context, draft.ignored, request));
  auto notes = std::make_shared<MessagesNotes>();
  HEARTH_TRY(ReadPrompt(reader, draft, *notes));
  ReadSampling(reader, request);
  if (const auto max = reader.Integer("max_tokens", 1, INT64_MAX)) {
    request.max_tokens =
        static_cast<int>(std::min<std::int64_t>(*max, INT_MAX));
  } else if (!request.count_only) {
    reader.Fault("max_tokens", "is missing: how long may the answer be?");
  }
  request.stream = reader.Bool("stream", false);
  request.include_usage = true;
  TemplateVariables variables(draft.context, draft.ignored);
  if (const OrderedJson* thinking = reader.FindObject("thinking")) {
    HEARTH_TRY(ReadThinking(*thinking, draft, variables, *notes));
  }
  HEARTH_TRY(ReadOutput(reader, draft, variables));
  variables.Give(request);
  if (const OrderedJson* diagnostics = reader.FindObject("diagnostics")) {
    ObjectReader inner(*diagnostics, "diagnostics", draft.ignored);
    request.compare_with = inner.Text("previous_message_id").value_or("");
    notes->diagnose = true;
    HEARTH_TRY(inner.Finish());
  }
  request.notes = std::move(notes);
  return reader.Finish();
}

}  // namespace hearth::serve
