#include "serve/turn/turn_choice.h"

namespace hearth::serve {
namespace {

std::string TextOf(const TextCodec& codec, std::int32_t id) {
  const auto text = codec.Decode({&id, 1});
  return text.ok() ? *text : "";
}

FinishReason ReasonOf(const GenerateReport& report, bool called) {
  switch (report.stop) {
    case StopReason::kLength:
      return FinishReason::kLength;
    case StopReason::kContext:
      return FinishReason::kContext;
    default:
      return called ? FinishReason::kToolCalls : FinishReason::kStop;
  }
}

}  // namespace

LogprobEntry TurnChoice::EntryOf(const Token& token) const {
  LogprobEntry entry;
  entry.token = TextOf(codec_, token.id);
  entry.logprob = token.logprob;
  for (const TokenLogprob& other : token.top) {
    entry.top.emplace_back(TextOf(codec_, other.id), other.logprob);
  }
  return entry;
}

std::string TurnChoice::Write(const std::vector<AnswerEvent>& events,
                              AnswerWriter& writer) {
  std::string bytes;
  for (const AnswerEvent& event : events) {
    if (event.kind == AnswerEvent::Kind::kCallBegin) called_ = true;
    if (event.kind == AnswerEvent::Kind::kFault) fault_ = event.text;
    // Probabilities are of the answer's text; thoughts and calls have none.
    const bool text = event.kind == AnswerEvent::Kind::kText;
    bytes += writer.Event(index_, event,
                          text ? entries_ : std::vector<LogprobEntry>());
    entries_.clear();
  }
  return bytes;
}

std::string TurnChoice::Feed(const Token& token, AnswerWriter& writer) {
  if (token.id >= 0) {
    ++n_tokens_;
    if (logprobs_) entries_.push_back(EntryOf(token));
  }
  if (reader_ != nullptr) {
    const std::vector<AnswerEvent> events = reader_->Feed(token);
    if (!events.empty() &&
        events.back().kind == AnswerEvent::Kind::kReasoning) {
      ++n_reasoning_;
    }
    return Write(events, writer);
  }
  if (token.text.empty()) return "";
  AnswerEvent event;
  event.text = std::string(token.text);
  return Write({event}, writer);
}

std::string TurnChoice::Finish(const GenerateReport& report,
                               AnswerWriter& writer) {
  std::string bytes;
  if (reader_ != nullptr) bytes = Write(reader_->Finish(), writer);
  return bytes + writer.FinishChoice(index_, ReasonOf(report, called_),
                                     report.stop_text);
}

}  // namespace hearth::serve
