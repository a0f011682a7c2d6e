// Answers of /v1/chat/completions.
#include "serve/wire/writer/figures.h"
#include "serve/wire/writer/writer_base.h"
#include "serve/wire/writer/writers.h"

namespace hearth::serve {
namespace {

const char* ReasonName(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kToolCalls:
      return "tool_calls";
    default:
      return "length";
  }
}

OrderedJson CallObject(const WrittenCall& call) {
  if (call.custom) {
    return {{"id", call.id},
            {"type", "custom"},
            {"custom", {{"name", call.name}, {"input", call.CustomInput()}}}};
  }
  return {{"id", call.id},
          {"type", "function"},
          {"function", {{"name", call.name}, {"arguments", call.arguments}}}};
}

OrderedJson LogprobObject(const std::vector<LogprobEntry>& logprobs) {
  return {{"content", LogprobList(logprobs)}, {"refusal", nullptr}};
}

OrderedJson MessageObject(const WrittenChoice& choice) {
  OrderedJson message = {{"role", "assistant"}, {"content", choice.text}};
  if (choice.text.empty() && !choice.calls.empty()) {
    message["content"] = nullptr;
  }
  message["refusal"] = nullptr;
  if (!choice.reasoning.empty()) {
    // One text under the two names that clients read.
    message["reasoning_content"] = choice.reasoning;
    message["reasoning"] = choice.reasoning;
  }
  for (const WrittenCall& call : choice.calls) {
    // The text of a custom call that was cut short is not known.
    if (call.custom && !call.ended) continue;
    message["tool_calls"].push_back(CallObject(call));
  }
  return message;
}

class ChatWriter : public WriterBase {
 public:
  explicit ChatWriter(const WriterParts& parts)
      : WriterBase(parts.request, parts.served, parts.request_id, parts.now_s) {
  }

  std::string_view content_type() const override {
    return request_.stream ? kEventStream : kJsonType;
  }
  std::string id() const override { return OwnId("chatcmpl-"); }

  std::string Begin(const Usage& usage, const Figures&) override {
    usage_ = usage;
    std::string out;
    for (std::size_t i = 0; request_.stream && i < choices_.size(); ++i) {
      out += Delta(static_cast<int>(i),
                   {{"role", "assistant"}, {"content", ""}}, nullptr);
    }
    return out;
  }

  std::string Ping(int processed, int total, double elapsed_ms) override {
    if (!request_.stream) return " ";
    if (request_.return_progress) {
      OrderedJson chunk = Chunk(OrderedJson::array());
      chunk["prompt_progress"] =
          ProgressObject(usage_, processed, total, elapsed_ms);
      return SseEvent("", chunk);
    }
    return ": prefill " + std::to_string(processed) + "/" +
           std::to_string(total) + "\n\n";
  }

  std::string End(const Usage& usage, const Figures& figures) override {
    if (request_.stream) {
      std::string out;
      if (request_.include_usage) {
        OrderedJson chunk = Chunk(OrderedJson::array());
        AddFigures(usage, figures, chunk);
        out = SseEvent("", chunk);
      }
      return out + "data: [DONE]\n\n";
    }
    OrderedJson choices = OrderedJson::array();
    for (std::size_t i = 0; i < choices_.size(); ++i) {
      const WrittenChoice& choice = choices_[i];
      choices.push_back(
          {{"index", i},
           {"message", MessageObject(choice)},
           {"logprobs", request_.logprobs ? LogprobObject(choice.logprobs)
                                          : OrderedJson(nullptr)},
           {"finish_reason", ReasonName(choice.reason)}});
    }
    OrderedJson body = {{"id", id()},
                        {"object", "chat.completion"},
                        {"created", now_s_},
                        {"model", served_.id},
                        {"choices", std::move(choices)}};
    AddFigures(usage, figures, body);
    return Dump(body);
  }

  std::string Fail(const WireError& error) override {
    const std::string body = ErrorBody(Dialect::kChat, error, request_id_);
    return request_.stream ? "data: " + body + "\n\n" : body;
  }

 protected:
  std::string OnPiece(int index, WrittenChoice& choice, Kind kind,
                      const std::string& text,
                      const std::vector<LogprobEntry>& logprobs) override {
    if (!request_.stream) return {};
    switch (kind) {
      case Kind::kReasoning:
        return Delta(index, {{"reasoning_content", text}}, nullptr);
      case Kind::kText:
        return Delta(
            index, {{"content", text}}, nullptr,
            request_.logprobs ? LogprobObject(logprobs) : OrderedJson(nullptr));
      case Kind::kCallBegin:
      case Kind::kCallArguments:
      case Kind::kCallEnd:
        return CallPiece(index, choice, kind, text);
      default:
        return {};
    }
  }

  std::string OnFinish(int index, WrittenChoice& choice) override {
    if (!request_.stream) return {};
    return Delta(index, OrderedJson::object(), ReasonName(choice.reason));
  }

 private:
  std::string CallPiece(int index, const WrittenChoice& choice, Kind kind,
                        const std::string& text) const {
    const WrittenCall& call = choice.calls.back();
    OrderedJson piece = {{"index", choice.calls.size() - 1}};
    if (call.custom) {
      // Its one text is known when the JSON around it is complete.
      if (kind != Kind::kCallEnd) return {};
      piece.update(CallObject(call));
    } else if (kind == Kind::kCallBegin) {
      piece.update(CallObject(call));
    } else if (kind == Kind::kCallArguments) {
      piece["function"] = {{"arguments", text}};
    } else {
      return {};
    }
    return Delta(index, {{"tool_calls", OrderedJson::array({piece})}}, nullptr);
  }

  OrderedJson Chunk(OrderedJson choices) const {
    return {{"id", id()},
            {"object", "chat.completion.chunk"},
            {"created", now_s_},
            {"model", served_.id},
            {"choices", std::move(choices)}};
  }

  std::string Delta(int index, OrderedJson delta, const char* reason,
                    OrderedJson logprobs = nullptr) const {
    OrderedJson choice = {{"index", index}, {"delta", std::move(delta)}};
    choice["logprobs"] = std::move(logprobs);
    choice["finish_reason"] =
        reason == nullptr ? OrderedJson(nullptr) : OrderedJson(reason);
    OrderedJson choices = OrderedJson::array();
    choices.push_back(std::move(choice));
    return SseEvent("", Chunk(std::move(choices)));
  }

  void AddFigures(const Usage& usage, const Figures& figures,
                  OrderedJson& body) const {
    body["usage"] = ChatUsage(usage);
    body["timings"] = TimingsObject(usage, figures);
    body["hearth"] = HearthObject(request_, usage, WithFault(figures));
  }

  Usage usage_;
};

}  // namespace

std::unique_ptr<AnswerWriter> MakeChatWriter(const WriterParts& parts) {
  return std::make_unique<ChatWriter>(parts);
}

}  // namespace hearth::serve
