// Answers of llama-server's /completion and /infill.
#include "serve/wire/writer/figures.h"
#include "serve/wire/writer/writer_base.h"
#include "serve/wire/writer/writers.h"

namespace hearth::serve {
namespace {

class LlamaWriter : public WriterBase {
 public:
  explicit LlamaWriter(const WriterParts& parts)
      : WriterBase(parts.request, parts.served, parts.request_id, parts.now_s) {
  }

  std::string_view content_type() const override {
    return request_.stream ? kEventStream : kJsonType;
  }
  std::string id() const override { return OwnId("cmpl-"); }

  std::string Begin(const Usage& usage, const Figures&) override {
    usage_ = usage;
    return {};
  }

  std::string Ping(int processed, int total, double elapsed_ms) override {
    if (!request_.stream) return " ";
    if (!request_.return_progress) {
      return ": prefill " + std::to_string(processed) + "/" +
             std::to_string(total) + "\n\n";
    }
    OrderedJson chunk = {{"index", 0}, {"content", ""}, {"stop", false}};
    chunk["prompt_progress"] =
        ProgressObject(usage_, processed, total, elapsed_ms);
    return SseEvent("", chunk);
  }

  std::string End(const Usage& usage, const Figures& figures) override {
    OrderedJson results = OrderedJson::array();
    for (std::size_t i = 0; i < choices_.size(); ++i) {
      results.push_back(Result(i, usage, figures));
    }
    if (request_.stream) {
      std::string out;
      for (const OrderedJson& result : results) out += SseEvent("", result);
      return out;
    }
    // One prompt, one object: as it is asked for.
    return Dump(results.size() == 1 ? results[0] : results);
  }

  std::string Fail(const WireError& error) override {
    const std::string body =
        ErrorBody(Dialect::kLlamaCompletion, error, request_id_);
    return request_.stream ? "data: " + body + "\n\n" : body;
  }

 protected:
  std::string OnPiece(int index, WrittenChoice&, Kind kind,
                      const std::string& text,
                      const std::vector<LogprobEntry>& logprobs) override {
    if (!request_.stream || kind != Kind::kText) return {};
    OrderedJson chunk = {{"index", index}, {"content", text}, {"stop", false}};
    if (request_.logprobs) {
      chunk["completion_probabilities"] = LogprobList(logprobs);
    }
    return SseEvent("", chunk);
  }

  std::string OnFinish(int, WrittenChoice&) override { return {}; }

 private:
  OrderedJson Result(std::size_t index, const Usage& usage,
                     const Figures& figures) const {
    const WrittenChoice& choice = choices_[index];
    const bool limit = choice.reason == FinishReason::kLength ||
                       choice.reason == FinishReason::kContext;
    const char* type = limit                      ? "limit"
                       : choice.stop_text.empty() ? "eos"
                                                  : "word";
    OrderedJson result = {
        {"index", index},
        {"content", request_.stream ? std::string() : choice.text},
        {"stop", true},
        {"model", served_.id},
        {"tokens_predicted", usage.completion},
        {"tokens_evaluated", usage.prompt},
        {"tokens_cached", usage.prompt + usage.completion},
        {"truncated", false},
        {"stop_type", type},
        {"stopping_word", choice.stop_text}};
    if (request_.logprobs && !request_.stream) {
      result["completion_probabilities"] = LogprobList(choice.logprobs);
    }
    result["timings"] = TimingsObject(usage, figures);
    result["hearth"] = HearthObject(request_, usage, WithFault(figures));
    return result;
  }

  Usage usage_;
};

}  // namespace

std::unique_ptr<AnswerWriter> MakeLlamaWriter(const WriterParts& parts) {
  return std::make_unique<LlamaWriter>(parts);
}

}  // namespace hearth::serve
