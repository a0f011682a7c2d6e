// The answer as it grows: sends sampled tokens to the caller, decides when it
// is over, and keeps the report.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/stopwatch.h"
#include "engine/sampler.h"
#include "engine/session/stop_texts.h"
#include "hearth/engine.h"
#include "text/tokenizer.h"

namespace hearth {

class Emitter {
 public:
  // `tokenizer` outlives the object. REQUIRES: CheckGenerate.
  Emitter(const Tokenizer& tokenizer, GenerateOptions options,
          Session::OnToken on_token);

  const GenerateOptions& options() const { return options_; }
  Sampler& sampler() { return sampler_; }
  SpeculationReport& speculation() { return report_.speculation; }
  // Tokens that may still come.
  int n_left() const {
    return options_.n_tokens_max - static_cast<int>(report_.token_ids.size());
  }

  // Emits a token that was sampled from `logits`. The token itself when the
  // answer goes on after it; nothing when it is over.
  std::optional<std::int32_t> Emit(std::int32_t id,
                                   std::span<const float> logits);
  // Samples and emits.
  std::optional<std::int32_t> Next(std::span<const float> logits) {
    return Emit(sampler_.Sample(logits), logits);
  }

  void StopForCaller() { report_.stop = StopReason::kCaller; }
  void StopForContext() { report_.stop = StopReason::kContext; }
  GenerateReport Finish();

 private:
  void FillLogprobs(std::span<const float> logits, Token& token);

  const Tokenizer& tokenizer_;
  const GenerateOptions options_;
  const Session::OnToken on_token_;
  Sampler sampler_;
  StreamDecoder decoder_;
  StopTexts stops_;
  std::vector<TokenLogprob> top_;  // of the token on its way out
  GenerateReport report_;
  Stopwatch clock_;
};

}  // namespace hearth
