#include "serve/wire/responses/output_items.h"

#include <utility>

#include "serve/wire/common/marked_text.h"
#include "serve/wire/writer/ids.h"

namespace hearth::serve {
namespace {

OrderedJson TextPart(const std::string& text, const OrderedJson& logprobs) {
  return {{"type", "output_text"},
          {"text", text},
          {"annotations", OrderedJson::array()},
          {"logprobs", logprobs}};
}

OrderedJson PartOf(const char* type, const std::string& text) {
  return {{"type", type}, {"text", text}};
}

}  // namespace

std::string OutputItems::NewId(const char* prefix) const {
  return ItemId(prefix, request_id_, std::to_string(items_.size()));
}

std::string OutputItems::Send(const char* type, OrderedJson members) {
  if (!stream_) return {};
  OrderedJson event = {{"type", type}, {"sequence_number", sequence_number_++}};
  event.update(members);
  return SseEvent(type, event);
}

// An event of the open item.
std::string OutputItems::Piece(const char* type, const char* place,
                               OrderedJson members) {
  OrderedJson event = {{"item_id", item()["id"]},
                       {"output_index", items_.size() - 1}};
  if (place != nullptr) event[place] = 0;
  event.update(members);
  return Send(type, std::move(event));
}

std::string OutputItems::Part(const char* type, const char* place,
                              OrderedJson part) {
  OrderedJson members = OrderedJson::object();
  members["part"] = std::move(part);
  return Piece(type, place, std::move(members));
}

std::string OutputItems::Start(Open kind, OrderedJson item) {
  open_ = kind;
  grown_.clear();
  grown_logprobs_ = OrderedJson::array();
  items_.push_back(std::move(item));
  return Send("response.output_item.added",
              {{"output_index", items_.size() - 1}, {"item", items_.back()}});
}

std::string OutputItems::Reasoning(const std::string& text) {
  std::string out;
  if (open_ != Open::kReasoning) {
    out = Close(true);
    out += Start(Open::kReasoning, {{"id", NewId("rs")},
                                    {"type", "reasoning"},
                                    {"summary", OrderedJson::array()},
                                    {"content", OrderedJson::array()},
                                    {"status", "in_progress"}});
    if (notes_.summary) {
      out += Part("response.reasoning_summary_part.added", "summary_index",
                  PartOf("summary_text", ""));
    }
    out += Part("response.content_part.added", "content_index",
                PartOf("reasoning_text", ""));
  }
  grown_ += text;
  if (notes_.summary) {
    out += Piece("response.reasoning_summary_text.delta", "summary_index",
                 {{"delta", text}});
  }
  return out + Piece("response.reasoning_text.delta", "content_index",
                     {{"delta", text}});
}

std::string OutputItems::Text(const std::string& text,
                              const std::vector<LogprobEntry>& logprobs) {
  std::string out;
  if (open_ != Open::kMessage) {
    out = Close(true);
    out += Start(Open::kMessage, {{"id", NewId("msg")},
                                  {"type", "message"},
                                  {"status", "in_progress"},
                                  {"role", "assistant"},
                                  {"content", OrderedJson::array()}});
    out += Part("response.content_part.added", "content_index",
                TextPart("", OrderedJson::array()));
  }
  grown_ += text;
  OrderedJson list = logprobs_ ? LogprobList(logprobs) : OrderedJson::array();
  for (const OrderedJson& entry : list) grown_logprobs_.push_back(entry);
  return out + Piece("response.output_text.delta", "content_index",
                     {{"delta", text}, {"logprobs", std::move(list)}});
}

std::string OutputItems::BeginCall(const WrittenCall& call) {
  const std::string out = Close(true);
  call_ = call;
  OrderedJson item = {
      {"id", NewId(call.custom ? "ctc" : "fc")},
      {"type", call.custom ? "custom_tool_call" : "function_call"},
      {"status", "in_progress"},
      {"call_id", call.id},
      {"name", call.name}};
  if (!call.space.empty()) item["namespace"] = call.space;
  item[call.custom ? "input" : "arguments"] = "";
  return out + Start(Open::kCall, std::move(item));
}

std::string OutputItems::Arguments(const std::string& text) {
  call_.arguments += text;
  // A custom tool's one text is known when the JSON around it is complete.
  if (open_ != Open::kCall || call_.custom) return {};
  return Piece("response.function_call_arguments.delta", nullptr,
               {{"delta", text}});
}

std::string OutputItems::CloseReasoning() {
  std::string out;
  if (notes_.summary) {
    OrderedJson part = PartOf("summary_text", grown_);
    item()["summary"].push_back(part);
    out += Piece("response.reasoning_summary_text.done", "summary_index",
                 {{"text", grown_}});
    out += Part("response.reasoning_summary_part.done", "summary_index",
                std::move(part));
  }
  OrderedJson part = PartOf("reasoning_text", grown_);
  item()["content"].push_back(part);
  out += Piece("response.reasoning_text.done", "content_index",
               {{"text", grown_}});
  out += Part("response.content_part.done", "content_index", std::move(part));
  if (notes_.encrypted) {
    item()["encrypted_content"] = MarkText(grown_, vault_);
  }
  return out;
}

std::string OutputItems::CloseMessage() {
  OrderedJson part = TextPart(grown_, grown_logprobs_);
  item()["content"].push_back(part);
  const std::string done =
      Piece("response.output_text.done", "content_index",
            {{"text", grown_}, {"logprobs", grown_logprobs_}});
  return done +
         Part("response.content_part.done", "content_index", std::move(part));
}

std::string OutputItems::CloseCall() {
  if (call_.custom) {
    const std::string input = call_.CustomInput();
    item()["input"] = input;
    const std::string delta = Piece("response.custom_tool_call_input.delta",
                                    nullptr, {{"delta", input}});
    return delta + Piece("response.custom_tool_call_input.done", nullptr,
                         {{"input", input}});
  }
  item()["arguments"] = call_.arguments;
  return Piece("response.function_call_arguments.done", nullptr,
               {{"name", call_.name}, {"arguments", call_.arguments}});
}

std::string OutputItems::Close(bool whole) {
  if (open_ == Open::kNone) return {};
  std::string out;
  if (open_ == Open::kReasoning) out = CloseReasoning();
  if (open_ == Open::kMessage) out = CloseMessage();
  if (open_ == Open::kCall) out = CloseCall();
  open_ = Open::kNone;
  item()["status"] = whole ? "completed" : "incomplete";
  return out + Send("response.output_item.done",
                    {{"output_index", items_.size() - 1}, {"item", item()}});
}

}  // namespace hearth::serve
