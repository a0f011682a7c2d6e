// Answers of /v1/messages.
#include <algorithm>

#include "serve/wire/common/marked_text.h"
#include "serve/wire/messages/notes.h"
#include "serve/wire/writer/figures.h"
#include "serve/wire/writer/writer_base.h"
#include "serve/wire/writer/writers.h"

namespace hearth::serve {
namespace {

class MessagesWriter : public WriterBase {
 public:
  explicit MessagesWriter(const WriterParts& parts)
      : WriterBase(parts.request, parts.served, parts.request_id, parts.now_s),
        vault_(parts.vault) {
    if (request_.notes != nullptr) {
      notes_ = static_cast<const MessagesNotes&>(*request_.notes);
    }
  }

  std::string_view content_type() const override {
    return request_.stream ? kEventStream : kJsonType;
  }
  std::string id() const override { return OwnId("msg_"); }
  PingRule pings() const override {
    PingRule rule = WriterBase::pings();
    rule.at_once = request_.stream;
    return rule;
  }

  std::string Begin(const Usage& usage, const Figures& figures) override {
    diagnosis_ = figures.cache_miss_reason;
    if (!request_.stream) return {};
    OrderedJson message = Message();
    Usage begin = usage;
    begin.completion = 0;  // a client adds what both ends say
    message["usage"] = UsageObject(begin);
    return Send("message_start", {{"message", std::move(message)}});
  }

  std::string Ping(int, int, double) override {
    return request_.stream ? Send("ping", OrderedJson::object()) : " ";
  }

  std::string End(const Usage& usage, const Figures& figures) override {
    const OrderedJson hearth =
        HearthObject(request_, usage, WithFault(figures));
    if (request_.stream) {
      return Send("message_delta", {{"delta",
                                     {{"stop_reason", reason_},
                                      {"stop_sequence", stop_sequence_}}},
                                    {"usage", UsageObject(usage)}}) +
             Send("message_stop", {{"hearth", hearth}});
    }
    OrderedJson message = Message();
    message["content"] = content_;
    message["stop_reason"] = reason_;
    message["stop_sequence"] = stop_sequence_;
    message["usage"] = UsageObject(usage);
    message["hearth"] = hearth;
    return Dump(message);
  }

  std::string Fail(const WireError& error) override {
    const std::string body = ErrorBody(Dialect::kMessages, error, request_id_);
    return request_.stream ? "event: error\ndata: " + body + "\n\n" : body;
  }

 protected:
  std::string OnPiece(int, WrittenChoice& choice, Kind kind,
                      const std::string& text,
                      const std::vector<LogprobEntry>&) override {
    switch (kind) {
      case Kind::kReasoning:
        return Grow("thinking", "thinking_delta", "thinking", text);
      case Kind::kText:
        return Grow("text", "text_delta", "text", text);
      case Kind::kCallBegin: {
        const WrittenCall& call = choice.calls.back();
        const std::string closed = Close();
        return closed + Open({{"type", "tool_use"},
                              {"id", call.id},
                              {"name", call.name},
                              {"input", OrderedJson::object()}});
      }
      case Kind::kCallArguments:
        return Delta({{"type", "input_json_delta"}, {"partial_json", text}});
      case Kind::kCallEnd:
        content_.back()["input"] = choice.calls.back().ArgumentsObject();
        return Close();
      default:
        return {};
    }
  }

  std::string OnFinish(int, WrittenChoice& choice) override {
    switch (choice.reason) {
      case FinishReason::kStop:
        reason_ = choice.stop_text.empty() ? "end_turn" : "stop_sequence";
        break;
      case FinishReason::kLength:
        reason_ = "max_tokens";
        break;
      case FinishReason::kToolCalls:
        reason_ = "tool_use";
        break;
      case FinishReason::kContext:
        reason_ = "model_context_window_exceeded";
    }
    if (!choice.stop_text.empty()) stop_sequence_ = choice.stop_text;
    if (open_ && content_.back()["type"] == "tool_use") {
      content_.back()["input"] = choice.calls.back().ArgumentsObject();
    }
    return Close();
  }

 private:
  // A block of that type, opened unless it is, with more text.
  std::string Grow(const char* type, const char* delta, const char* member,
                   const std::string& text) {
    std::string out;
    if (!open_ || content_.back()["type"] != type) {
      OrderedJson block = {{"type", type}, {member, ""}};
      if (type == std::string_view("thinking")) block["signature"] = "";
      out = Close();
      out += Open(std::move(block));
    }
    grown_ += text;
    if (type == std::string_view("thinking") && notes_.omit_thinking) {
      return out;
    }
    return out + Delta({{"type", delta}, {member, text}});
  }

  std::string Open(OrderedJson block) {
    open_ = true;
    grown_.clear();
    content_.push_back(std::move(block));
    return Send("content_block_start", {{"index", content_.size() - 1},
                                        {"content_block", content_.back()}});
  }

  std::string Delta(OrderedJson delta) {
    return Send("content_block_delta",
                {{"index", content_.size() - 1}, {"delta", std::move(delta)}});
  }

  std::string Close() {
    if (!open_) return {};
    open_ = false;
    std::string out;
    OrderedJson& block = content_.back();
    if (block["type"] == "text") block["text"] = grown_;
    if (block["type"] == "thinking") {
      const bool omit = notes_.omit_thinking;
      const std::string signature =
          omit ? MarkText(grown_, vault_) : std::string(kShownMark);
      block["thinking"] = omit ? std::string() : grown_;
      block["signature"] = signature;
      out = Delta({{"type", "signature_delta"}, {"signature", signature}});
    }
    return out + Send("content_block_stop", {{"index", content_.size() - 1}});
  }

  std::string Send(const char* type, const OrderedJson& members) const {
    if (!request_.stream) return {};
    OrderedJson event = {{"type", type}};
    event.update(members);
    return SseEvent(type, event);
  }

  OrderedJson Message() const {
    OrderedJson message = {{"id", id()},
                           {"type", "message"},
                           {"role", "assistant"},
                           {"model", served_.id},
                           {"content", OrderedJson::array()},
                           {"stop_reason", nullptr},
                           {"stop_sequence", nullptr}};
    if (notes_.diagnose) {
      OrderedJson reason = nullptr;
      if (!diagnosis_.empty()) {
        auto parsed = ParseBodyJson(diagnosis_, "diagnostics");
        if (parsed.ok()) reason = std::move(*parsed);
      }
      message["diagnostics"]["cache_miss_reason"] = std::move(reason);
    }
    return message;
  }

  OrderedJson UsageObject(const Usage& usage) const {
    const int created = std::min(usage.computed_to_breakpoint, usage.computed);
    const bool hour = request_.breakpoint_ttl_s >= 3600;
    return {{"input_tokens", usage.computed - created},
            {"cache_creation_input_tokens", created},
            {"cache_read_input_tokens", usage.reused},
            {"output_tokens", usage.completion},
            {"cache_creation",
             {{"ephemeral_5m_input_tokens", hour ? 0 : created},
              {"ephemeral_1h_input_tokens", hour ? created : 0}}}};
  }

  const Vault* vault_;
  MessagesNotes notes_;
  OrderedJson content_ = OrderedJson::array();
  bool open_ = false;
  std::string grown_;  // text of the open block
  OrderedJson reason_ = nullptr;
  OrderedJson stop_sequence_ = nullptr;
  std::string diagnosis_;
};

}  // namespace

std::unique_ptr<AnswerWriter> MakeMessagesWriter(const WriterParts& parts) {
  return std::make_unique<MessagesWriter>(parts);
}

}  // namespace hearth::serve
