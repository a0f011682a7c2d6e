// POST /v1/chat/completions.
#include "serve/wire/chat/chat_messages.h"
#include "serve/wire/common/content.h"
#include "serve/wire/common/settings.h"
#include "serve/wire/common/tools.h"
#include "serve/wire/parse.h"

namespace hearth::serve {
namespace {

// The name in `{"type":"function","function":{"name":...}}`, or custom's.
std::string NamedIn(const OrderedJson& choice) {
  for (const char* kind : {"function", "custom"}) {
    const auto inner = choice.find(kind);
    if (inner == choice.end() || !inner->is_object()) continue;
    const auto name = inner->find("name");
    if (name != inner->end() && name->is_string()) {
      return name->get<std::string>();
    }
  }
  return {};
}

Checked ReadAllowed(const OrderedJson& choice, const ToolSet& tools,
                    Ignored& ignored, AnswerForm& form) {
  const std::string path = "tool_choice.allowed_tools";
  ObjectReader outer(choice, "tool_choice", ignored);
  outer.Take({"type"});
  const OrderedJson* allowed = outer.FindObject("allowed_tools");
  if (allowed == nullptr) outer.Fault("allowed_tools", "is missing.");
  HEARTH_TRY(outer.Finish());
  ObjectReader reader(*allowed, path, ignored);
  const std::string mode = reader.Text("mode").value_or("auto");
  const OrderedJson* names = reader.FindArray("tools");
  HEARTH_TRY(reader.Finish());
  HEARTH_TRY(ChooseAllowed(mode, path + ".mode", tools, form));
  for (std::size_t i = 0; names != nullptr && i < names->size(); ++i) {
    const std::string at = At(path + ".tools", i);
    HEARTH_TRY(TypeOf((*names)[i], at));
    HEARTH_TRY(Allow(NamedIn((*names)[i]), at, tools, form));
  }
  if (form.allowed_tools.empty()) form.tool_use = ToolUse::kNone;
  return Done{};
}

Checked ReadToolChoice(const OrderedJson* choice, const ToolSet& tools,
                       Ignored& ignored, AnswerForm& form) {
  if (tools.empty()) form.tool_use = ToolUse::kNone;
  if (choice == nullptr) return Done{};
  const std::string path = "tool_choice";
  if (choice->is_string()) {
    return ChooseByWord(choice->get<std::string>(), tools, form);
  }
  HEARTH_ASSIGN(const std::string type, TypeOf(*choice, path));
  if (type == "allowed_tools") {
    return ReadAllowed(*choice, tools, ignored, form);
  }
  if (type != "function" && type != "custom") {
    return BadField(path + ".type",
                    "must be function, custom or allowed_tools.");
  }
  return Choose(ToolUse::kNamed, NamedIn(*choice), path, tools, form);
}

Checked ReadTools(ObjectReader& reader, Draft& draft) {
  ToolSet tools;
  const OrderedJson* list = reader.FindArray("tools");
  for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
    HEARTH_TRY(AddChatTool((*list)[i], At("tools", i), tools, draft.ignored));
  }
  HEARTH_TRY(CheckToolFormat(tools, draft.context));
  AnswerForm& form = draft.request.form;
  form.parallel_calls = reader.Bool("parallel_tool_calls", true);
  HEARTH_TRY(
      ReadToolChoice(reader.Find("tool_choice"), tools, draft.ignored, form));
  tools.Give(draft.request);
  return Done{};
}

void ReadThinking(ObjectReader& reader, Draft& draft) {
  TemplateVariables variables(draft.context, draft.ignored);
  if (const OrderedJson* given = reader.FindObject("chat_template_kwargs")) {
    variables.Take(*given, "chat_template_kwargs");
  }
  if (const auto on = reader.Bool("enable_thinking")) {
    variables.Think(*on, "enable_thinking");
  }
  if (const auto effort = reader.Text("reasoning_effort")) {
    variables.Effort(*effort, "reasoning_effort");
  }
  variables.Give(draft.request);
}

Checked ReadStreaming(ObjectReader& reader, Draft& draft) {
  WireRequest& request = draft.request;
  request.stream = reader.Bool("stream", false);
  request.return_progress = reader.Bool("return_progress", false);
  const OrderedJson* options = reader.FindObject("stream_options");
  if (options == nullptr) return Done{};
  ObjectReader inner(*options, "stream_options", draft.ignored);
  request.include_usage = inner.Bool("include_usage", false);
  return inner.Finish();
}

void ReadRefused(ObjectReader& reader) {
  reader.Refuse("audio", "hearth writes text alone. Leave it out.");
  reader.Refuse("web_search_options",
                "hearth searches nothing. Leave it out, or offer a tool.");
  reader.Refuse("functions", "is of an older form. Use tools.");
  reader.Refuse("function_call", "is of an older form. Use tool_choice.");
  const OrderedJson* modalities = reader.FindArray("modalities");
  for (std::size_t i = 0; modalities != nullptr && i < modalities->size();
       ++i) {
    if ((*modalities)[i] != "text") {
      reader.Fault("modalities", "hearth writes text alone. Send [\"text\"].");
    }
  }
}

void ReadAnswers(ObjectReader& reader, WireRequest& request) {
  ReadStop(reader, "stop", request);
  ReadMaxTokens(reader, "max_tokens", 1, request);
  ReadMaxTokens(reader, "max_completion_tokens", 1, request);
  request.n = static_cast<int>(reader.Integer("n", 1, kChoicesMax).value_or(1));
  request.ignore_eos = reader.Bool("ignore_eos", false);
  request.logprobs = reader.Bool("logprobs", false);
  request.top_logprobs = static_cast<int>(
      reader.Integer("top_logprobs", 0, kTopLogprobsMax).value_or(0));
  if (request.top_logprobs > 0 && !request.logprobs) {
    reader.Fault("top_logprobs", "needs \"logprobs\": true.");
  }
}

}  // namespace

Checked ParseChat(Draft& draft) {
  WireRequest& request = draft.request;
  ObjectReader reader(draft.body, "", draft.ignored);
  ReadRefused(reader);
  HEARTH_TRY(reader.Check());
  HEARTH_TRY(ReadModel(reader, draft.context, draft.ignored, request));
  const OrderedJson* messages = reader.FindArray("messages");
  if (messages == nullptr || messages->empty()) {
    reader.Fault("messages", "must be an array with a message at least.");
  }
  HEARTH_TRY(reader.Check());
  Conversation conversation;
  HEARTH_TRY(ReadChatMessages(*messages, draft.ignored, conversation));
  request.dialogue.messages_json = conversation.Json();
  HEARTH_TRY(ReadTools(reader, draft));
  ReadSampling(reader, request.sampling);
  ReadAnswers(reader, request);
  ReadThinking(reader, draft);
  HEARTH_TRY(ReadStreaming(reader, draft));
  if (const OrderedJson* format = reader.FindObject("response_format")) {
    HEARTH_TRY(ReadFormat(*format, "response_format", true, draft.ignored,
                          request.form));
  }
  ReadGrammar(reader, request.form);
  request.label = reader.Text("prompt_cache_key").value_or("");
  if (!request.label.empty()) draft.ignored.Add("prompt_cache_key");
  return reader.Finish();
}

}  // namespace hearth::serve
