// POST /v1/responses.
#include <algorithm>
#include <climits>

#include "serve/wire/common/content.h"
#include "serve/wire/common/settings.h"
#include "serve/wire/responses/items.h"
#include "serve/wire/responses/notes.h"
#include "serve/wire/responses/tools.h"
#include "serve/wire/store/response_store.h"

namespace hearth::serve {
namespace {

// A conversation is read back one response at a time.
constexpr std::size_t kChainMax = 4096;

Parsed<std::vector<StoredResponse>> FindChain(const std::string& id,
                                              const ParseContext& context) {
  std::vector<StoredResponse> chain;
  for (std::string next = id; !next.empty();) {
    std::optional<StoredResponse> found;
    if (context.store != nullptr && chain.size() < kChainMax) {
      found = context.store->Find(next, context.space, context.now_s);
    }
    if (!found) {
      return WireError{.status = 404,
                       .code = "previous_response_not_found",
                       .param = "previous_response_id",
                       .message = "The response \"" + next +
                                  "\" is not kept here. Send the "
                                  "conversation's items instead."};
    }
    next = found->previous_id;
    chain.push_back(std::move(*found));
  }
  std::reverse(chain.begin(), chain.end());
  return chain;
}

Checked ReadStoredItems(const std::string& json, const char* member,
                        ItemReader& items) {
  HEARTH_ASSIGN(const OrderedJson value,
                ParseBodyJson(json, "previous_response_id"));
  const OrderedJson* list = &value;
  if (member != nullptr) {
    const auto found = value.find(member);
    if (found == value.end()) return Done{};
    list = &*found;
  }
  for (std::size_t i = 0; i < list->size(); ++i) {
    HEARTH_TRY(items.Read((*list)[i], At("previous_response_id", i)));
  }
  return Done{};
}

// The items of the request, references resolved.
Parsed<OrderedJson> OwnItems(const OrderedJson& input, Draft& draft) {
  if (input.is_string()) {
    return OrderedJson::array({{{"type", "message"},
                                {"role", "user"},
                                {"content", input.get<std::string>()}}});
  }
  if (!input.is_array()) {
    return BadField("input", "must be a string or an array of items.");
  }
  OrderedJson items = OrderedJson::array();
  for (std::size_t i = 0; i < input.size(); ++i) {
    const OrderedJson& item = input[i];
    const bool object = item.is_object();
    const auto id = object ? item.find("id") : item.end();
    const bool has_id = object && id != item.end() && id->is_string();
    const auto type = object ? item.find("type") : item.end();
    // The published form also names an item by its id alone.
    const bool reference =
        object && (type != item.end() ? *type == "item_reference"
                                      : has_id && item.size() == 1);
    if (!reference) {
      items.push_back(item);
      continue;
    }
    if (!has_id) return BadField(At("input", i) + ".id", "is missing.");
    HEARTH_ASSIGN(OrderedJson found,
                  FindItem(id->get<std::string>(), draft.context));
    items.push_back(std::move(found));
  }
  return items;
}

Checked ReadPrompt(ObjectReader& reader, Draft& draft, ResponsesNotes& notes) {
  Conversation conversation;
  ItemReader items(draft, conversation);
  if (const auto instructions = reader.Text("instructions")) {
    if (!instructions->empty()) conversation.Add("system", *instructions);
  }
  notes.previous_id = reader.Text("previous_response_id").value_or("");
  const OrderedJson* input = reader.Find("input");
  if (input == nullptr && notes.previous_id.empty()) {
    reader.Fault("input", "is missing.");
  }
  HEARTH_TRY(reader.Check());
  HEARTH_ASSIGN(const std::vector<StoredResponse> chain,
                FindChain(notes.previous_id, draft.context));
  for (const StoredResponse& earlier : chain) {
    HEARTH_TRY(ReadStoredItems(earlier.input_json, nullptr, items));
    HEARTH_TRY(ReadStoredItems(earlier.response_json, "output", items));
  }
  if (input != nullptr) {
    HEARTH_ASSIGN(notes.input, OwnItems(*input, draft));
  }
  for (std::size_t i = 0; i < notes.input.size(); ++i) {
    HEARTH_TRY(items.Read(notes.input[i], At("input", i)));
  }
  items.Flush();
  if (conversation.size() == 0) {
    return BadField("input", "holds no message to answer.");
  }
  draft.request.dialogue.messages_json = conversation.Json();
  return Done{};
}

Checked ReadTools(ObjectReader& reader, Draft& draft) {
  ToolSet tools;
  const OrderedJson* list = reader.FindArray("tools");
  for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
    HEARTH_TRY(
        AddResponsesTool((*list)[i], At("tools", i), "", tools, draft.ignored));
  }
  HEARTH_TRY(CheckToolFormat(tools, draft.context));
  AnswerForm& form = draft.request.form;
  form.parallel_calls = reader.Bool("parallel_tool_calls", true);
  HEARTH_TRY(ReadResponsesChoice(reader.Find("tool_choice"), tools,
                                 draft.ignored, form));
  tools.Give(draft.request);
  return Done{};
}

Checked ReadReasoning(ObjectReader& reader, Draft& draft,
                      ResponsesNotes& notes) {
  TemplateVariables variables(draft.context, draft.ignored);
  if (const OrderedJson* reasoning = reader.FindObject("reasoning")) {
    const auto summary = reasoning->find("summary");
    notes.summary = summary == reasoning->end() || !summary->is_null();
    ObjectReader inner(*reasoning, "reasoning", draft.ignored);
    if (const auto effort = inner.Text("effort")) {
      variables.Effort(*effort, "reasoning.effort");
    }
    // Whatever length was asked for, the summary is the text.
    inner.Take({"summary", "generate_summary"});
    HEARTH_TRY(inner.Finish());
  }
  variables.Give(draft.request);
  return Done{};
}

void ReadInclude(ObjectReader& reader, Draft& draft, ResponsesNotes& notes) {
  const OrderedJson* include = reader.FindArray("include");
  for (std::size_t i = 0; include != nullptr && i < include->size(); ++i) {
    if ((*include)[i] == "reasoning.encrypted_content") {
      notes.encrypted = true;
    } else if ((*include)[i] == "message.output_text.logprobs") {
      draft.request.logprobs = true;
    } else {
      draft.ignored.Add(At("include", i));
    }
  }
}

void ReadRefused(ObjectReader& reader) {
  if (reader.Bool("background", false)) {
    reader.Fault("background",
                 "an answer is made while its caller waits. Leave it out.");
  }
  if (reader.Text("truncation").value_or("disabled") != "disabled") {
    reader.Fault("truncation",
                 "no prompt is ever cut. Send \"disabled\" and shorten the "
                 "conversation.");
  }
  reader.Refuse("conversation", "use previous_response_id.");
  reader.Refuse("prompt", "no prompts are kept here. Send its text.");
}

// What the answer repeats of its request.
void Repeat(const OrderedJson& body, ResponsesNotes& notes) {
  const auto repeat = [&](const char* name, OrderedJson fallback) {
    const auto it = body.find(name);
    notes.echo[name] =
        it == body.end() || it->is_null() ? std::move(fallback) : *it;
  };
  repeat("instructions", nullptr);
  repeat("max_output_tokens", nullptr);
  repeat("max_tool_calls", nullptr);
  repeat("parallel_tool_calls", true);
  repeat("previous_response_id", nullptr);
  repeat("reasoning", {{"effort", nullptr}, {"summary", nullptr}});
  repeat("store", true);
  repeat("temperature", nullptr);
  repeat("text", {{"format", {{"type", "text"}}}});
  repeat("tool_choice", "auto");
  repeat("tools", OrderedJson::array());
  repeat("top_p", nullptr);
  repeat("truncation", "disabled");
  repeat("user", nullptr);
  repeat("metadata", OrderedJson::object());
}

Checked ReadText(ObjectReader& reader, Draft& draft) {
  const OrderedJson* text = reader.FindObject("text");
  HEARTH_TRY(reader.Check());
  if (text == nullptr) return Done{};
  ObjectReader inner(*text, "text", draft.ignored);
  const OrderedJson* format = inner.FindObject("format");
  HEARTH_TRY(inner.Finish());
  if (format == nullptr) return Done{};
  return ReadFormat(*format, "text.format", false, draft.ignored,
                    draft.request.form);
}

}  // namespace

Checked ParseResponses(Draft& draft) {
  WireRequest& request = draft.request;
  ObjectReader reader(draft.body, "", draft.ignored);
  ReadRefused(reader);
  HEARTH_TRY(reader.Check());
  HEARTH_TRY(ReadModel(reader, draft.context, draft.ignored, request));
  auto notes = std::make_shared<ResponsesNotes>();
  HEARTH_TRY(ReadPrompt(reader, draft, *notes));
  HEARTH_TRY(ReadTools(reader, draft));
  HEARTH_TRY(ReadReasoning(reader, draft, *notes));
  HEARTH_TRY(ReadText(reader, draft));
  ReadInclude(reader, draft, *notes);
  request.sampling.temperature = reader.Number("temperature", 0, 2);
  request.sampling.top_p = reader.Number("top_p", 0, 1);
  request.top_logprobs = static_cast<int>(
      reader.Integer("top_logprobs", 0, kTopLogprobsMax).value_or(0));
  if (const auto max = reader.Integer("max_output_tokens", 1, INT64_MAX)) {
    request.max_tokens =
        static_cast<int>(std::min<std::int64_t>(*max, INT_MAX));
  }
  request.stream = reader.Bool("stream", false);
  request.include_usage = true;
  notes->store = reader.Bool("store", true);
  request.label = reader.Text("prompt_cache_key").value_or("");
  if (!request.label.empty()) draft.ignored.Add("prompt_cache_key");
  Repeat(draft.body, *notes);
  request.notes = std::move(notes);
  return reader.Finish();
}

}  // namespace hearth::serve
