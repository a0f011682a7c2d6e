#include "engine/emitter.h"

#include <algorithm>
#include <utility>

#include "engine/session.h"

namespace hearth {

Emitter::Emitter(const EngineParts& parts, const GenerateOptions& options,
                 const Session::OnToken& on_token)
    : parts_(parts),
      options_(options),
      on_token_(on_token),
      sampler_(options.sampling),
      decoder_(*parts.tokenizer, /*skip_special=*/true, /*at_start=*/false) {}

std::optional<std::int32_t> Emitter::Emit(std::int32_t id) {
  if (report_.token_ids.empty()) report_.first_token_ms = clock_.ms();
  if (!options_.ignore_eos && parts_.IsEnd(id)) {
    report_.stop = StopReason::kEndOfText;
    report_.end_id = id;
    return std::nullopt;
  }
  report_.token_ids.push_back(id);
  bool stopped = false;
  const std::string text = Release(decoder_.Push(id), stopped);
  report_.text += text;
  if (on_token_ && !on_token_({id, text})) {
    report_.stop = StopReason::kCaller;
    return std::nullopt;
  }
  if (stopped) {
    report_.stop = StopReason::kEndOfText;
    return std::nullopt;
  }
  if (n_left() <= 0) {
    report_.stop = StopReason::kLength;
    return std::nullopt;
  }
  return id;
}

GenerateReport Emitter::Finish() {
  const std::string rest = held_ + decoder_.Flush();
  report_.text += rest;
  if (!rest.empty() && on_token_) (void)on_token_({-1, rest});
  report_.decode_ms = clock_.ms() - report_.first_token_ms;
  return std::move(report_);
}

// What may be shown now: all but an ending that may turn out to be the
// beginning of the stop text.
std::string Emitter::Release(const std::string& text, bool& stopped) {
  const std::string& stop = options_.stop_text;
  held_ += text;
  if (stop.empty()) return std::exchange(held_, "");
  const auto at = held_.find(stop);
  stopped = at != std::string::npos;
  std::size_t n = stopped ? at : held_.size();
  if (!stopped) {
    std::size_t keep = std::min(held_.size(), stop.size() - 1);
    while (!held_.ends_with(stop.substr(0, keep))) --keep;
    n -= keep;
  }
  std::string shown = held_.substr(0, n);
  held_.erase(0, stopped ? held_.size() : n);
  return shown;
}

}  // namespace hearth
