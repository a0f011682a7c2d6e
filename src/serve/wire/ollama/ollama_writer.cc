// Answers of /api/chat and /api/generate: a JSON object a line.
#include <cmath>

#include "serve/wire/writer/figures.h"
#include "serve/wire/writer/ids.h"
#include "serve/wire/writer/writer_base.h"
#include "serve/wire/writer/writers.h"

namespace hearth::serve {
namespace {

std::int64_t Nanoseconds(double ms) {
  return static_cast<std::int64_t>(std::llround(ms * 1e6));
}

class OllamaWriter : public WriterBase {
 public:
  explicit OllamaWriter(const WriterParts& parts)
      : WriterBase(parts.request, parts.served, parts.request_id, parts.now_s),
        chat_(request_.dialect == Dialect::kOllamaChat) {}

  std::string_view content_type() const override {
    return request_.stream ? kLinesType : kJsonType;
  }
  std::string id() const override { return request_id_; }
  PingRule pings() const override {
    if (!request_.stream) return WriterBase::pings();
    return {.first_ms = 15'000, .every_ms = 15'000};
  }

  std::string Begin(const Usage&, const Figures&) override { return {}; }

  std::string Ping(int, int, double) override {
    return request_.stream ? Line("", {}) : " ";
  }

  std::string End(const Usage& usage, const Figures& figures) override {
    const WrittenChoice& choice = choices_.front();
    OrderedJson line = Head();
    if (request_.stream) {
      Put(line, "", "", {});
    } else {
      Put(line, choice.text, choice.reasoning, choice.calls);
      if (request_.logprobs) line["logprobs"] = LogprobList(choice.logprobs);
    }
    line["done"] = true;
    line["done_reason"] = Reason(choice);
    line["total_duration"] =
        Nanoseconds(figures.queue_ms + figures.lookup_ms + figures.prefill_ms +
                    figures.decode_ms);
    line["load_duration"] = Nanoseconds(figures.lookup_ms);
    line["prompt_eval_count"] = usage.prompt;
    line["prompt_eval_duration"] = Nanoseconds(figures.prefill_ms);
    line["eval_count"] = usage.completion;
    line["eval_duration"] = Nanoseconds(figures.decode_ms);
    line["timings"] = TimingsObject(usage, figures);
    line["hearth"] = HearthObject(request_, usage, WithFault(figures));
    return Dump(line) + (request_.stream ? "\n" : "");
  }

  std::string Fail(const WireError& error) override {
    return ErrorBody(request_.dialect, error, request_id_) +
           (request_.stream ? "\n" : "");
  }

 protected:
  std::string OnPiece(int, WrittenChoice& choice, Kind kind,
                      const std::string& text,
                      const std::vector<LogprobEntry>& logprobs) override {
    if (!request_.stream) return {};
    if (kind == Kind::kText) return Line(text, logprobs);
    OrderedJson line = Head();
    if (kind == Kind::kReasoning) {
      Put(line, "", text, {});
    } else if (kind == Kind::kCallEnd) {
      ++written_calls_;
      Put(line, "", "", {choice.calls.back()});
    } else {
      return {};  // a call goes out when its arguments are complete
    }
    line["done"] = false;
    return Dump(line) + "\n";
  }

  std::string OnFinish(int, WrittenChoice&) override { return {}; }

 private:
  const char* Reason(const WrittenChoice& choice) const {
    if (request_.load_only) return "load";
    const bool cut = choice.reason == FinishReason::kLength ||
                     choice.reason == FinishReason::kContext;
    return cut ? "length" : "stop";
  }

  OrderedJson Head() const {
    return {{"model", served_.id}, {"created_at", IsoTime(now_s_)}};
  }

  std::string Line(const std::string& text,
                   const std::vector<LogprobEntry>& logprobs) const {
    OrderedJson line = Head();
    Put(line, text, "", {});
    line["done"] = false;
    if (request_.logprobs && !logprobs.empty()) {
      line["logprobs"] = LogprobList(logprobs);
    }
    return Dump(line) + "\n";
  }

  void Put(OrderedJson& line, const std::string& text,
           const std::string& thinking,
           const std::vector<WrittenCall>& calls) const {
    if (!chat_) {
      line["response"] = text;
      if (!thinking.empty()) line["thinking"] = thinking;
      return;
    }
    OrderedJson message = {{"role", "assistant"}, {"content", text}};
    if (!thinking.empty()) message["thinking"] = thinking;
    // A list of one is a line of its own, in the order of the calls.
    const std::size_t first = request_.stream ? written_calls_ - 1 : 0;
    for (std::size_t i = 0; i < calls.size(); ++i) {
      if (!calls[i].ended) continue;  // its arguments are no object
      message["tool_calls"].push_back(
          {{"id", calls[i].id},
           {"function",
            {{"index", first + i},
             {"name", calls[i].name},
             {"arguments", calls[i].ArgumentsObject()}}}});
    }
    line["message"] = std::move(message);
  }

  const bool chat_;
  std::size_t written_calls_ = 0;
};

}  // namespace

std::unique_ptr<AnswerWriter> MakeOllamaWriter(const WriterParts& parts) {
  return std::make_unique<OllamaWriter>(parts);
}

}  // namespace hearth::serve
