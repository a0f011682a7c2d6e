// Answers of /v1/completions.
#include "serve/wire/writer/figures.h"
#include "serve/wire/writer/writer_base.h"
#include "serve/wire/writer/writers.h"

namespace hearth::serve {
namespace {

class CompletionsWriter : public WriterBase {
 public:
  explicit CompletionsWriter(const WriterParts& parts)
      : WriterBase(parts.request, parts.served, parts.request_id, parts.now_s),
        written_(choices_.size()) {}

  std::string_view content_type() const override {
    return request_.stream ? kEventStream : kJsonType;
  }
  std::string id() const override { return OwnId("cmpl-"); }

  std::string Begin(const Usage& usage, const Figures&) override {
    usage_ = usage;
    std::string out;
    for (std::size_t i = 0; request_.stream && i < choices_.size(); ++i) {
      written_[i] = choices_[i].echo.size();
      if (choices_[i].echo.empty()) continue;
      out += Chunk(static_cast<int>(i), choices_[i].echo, nullptr, nullptr);
    }
    return out;
  }

  std::string Ping(int processed, int total, double elapsed_ms) override {
    if (!request_.stream) return " ";
    if (request_.return_progress) {
      OrderedJson body = Body(OrderedJson::array());
      body["prompt_progress"] =
          ProgressObject(usage_, processed, total, elapsed_ms);
      return SseEvent("", body);
    }
    return ": prefill " + std::to_string(processed) + "/" +
           std::to_string(total) + "\n\n";
  }

  std::string End(const Usage& usage, const Figures& figures) override {
    OrderedJson choices = OrderedJson::array();
    if (!request_.stream) {
      for (std::size_t i = 0; i < choices_.size(); ++i) {
        const WrittenChoice& choice = choices_[i];
        choices.push_back(
            Choice(static_cast<int>(i), choice.echo + choice.text,
                   Logprobs(choice.logprobs, choice.echo.size()),
                   choice.reason == FinishReason::kStop ? "stop" : "length"));
      }
    }
    OrderedJson body = Body(std::move(choices));
    body["usage"] = ChatUsage(usage);
    body["timings"] = TimingsObject(usage, figures);
    body["hearth"] = HearthObject(request_, usage, WithFault(figures));
    if (!request_.stream) return Dump(body);
    return (request_.include_usage ? SseEvent("", body) : std::string()) +
           "data: [DONE]\n\n";
  }

  std::string Fail(const WireError& error) override {
    const std::string body =
        ErrorBody(Dialect::kCompletions, error, request_id_);
    return request_.stream ? "data: " + body + "\n\n" : body;
  }

 protected:
  std::string OnPiece(int index, WrittenChoice&, Kind kind,
                      const std::string& text,
                      const std::vector<LogprobEntry>& logprobs) override {
    if (!request_.stream || kind != Kind::kText) return {};
    std::size_t& at = written_[static_cast<std::size_t>(index)];
    const std::string out = Chunk(index, text, Logprobs(logprobs, at), nullptr);
    at += text.size();
    return out;
  }

  std::string OnFinish(int index, WrittenChoice& choice) override {
    if (!request_.stream) return {};
    return Chunk(index, "", nullptr,
                 choice.reason == FinishReason::kStop ? "stop" : "length");
  }

 private:
  // `offset`: in bytes of the choice's text.
  OrderedJson Logprobs(const std::vector<LogprobEntry>& logprobs,
                       std::size_t offset) const {
    if (!request_.logprobs) return nullptr;
    OrderedJson tokens = OrderedJson::array(), values = OrderedJson::array(),
                tops = OrderedJson::array(), offsets = OrderedJson::array();
    for (const LogprobEntry& entry : logprobs) {
      OrderedJson top = OrderedJson::object();
      for (const auto& [token, logprob] : entry.top) {
        top[token] = FiniteLogprob(logprob);
      }
      tokens.push_back(entry.token);
      values.push_back(FiniteLogprob(entry.logprob));
      tops.push_back(std::move(top));
      offsets.push_back(offset);
      offset += entry.token.size();
    }
    return {{"tokens", std::move(tokens)},
            {"token_logprobs", std::move(values)},
            {"top_logprobs", std::move(tops)},
            {"text_offset", std::move(offsets)}};
  }

  static OrderedJson Choice(int index, std::string text, OrderedJson logprobs,
                            const char* reason) {
    OrderedJson choice = {{"text", std::move(text)}, {"index", index}};
    choice["logprobs"] = std::move(logprobs);
    choice["finish_reason"] =
        reason == nullptr ? OrderedJson(nullptr) : OrderedJson(reason);
    return choice;
  }

  OrderedJson Body(OrderedJson choices) const {
    return {{"id", id()},
            {"object", "text_completion"},
            {"created", now_s_},
            {"model", served_.id},
            {"choices", std::move(choices)}};
  }

  std::string Chunk(int index, const std::string& text, OrderedJson logprobs,
                    const char* reason) const {
    OrderedJson choices = OrderedJson::array();
    choices.push_back(Choice(index, text, std::move(logprobs), reason));
    return SseEvent("", Body(std::move(choices)));
  }

  Usage usage_;
  std::vector<std::size_t> written_;  // bytes of each choice's text
};

}  // namespace

std::unique_ptr<AnswerWriter> MakeCompletionsWriter(const WriterParts& parts) {
  return std::make_unique<CompletionsWriter>(parts);
}

}  // namespace hearth::serve
