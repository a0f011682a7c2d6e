// The answer as it grows: sends sampled tokens to the caller, decides when it
// is over, and keeps the report.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/stopwatch.h"
#include "engine/sampling/sampler.h"
#include "engine/session/answer/stop_texts.h"
#include "hearth/engine.h"
#include "text/tokenizer.h"

namespace hearth {

// A constraint for one answer; null when it is free. kInvalidArgument when
// options.constraint gives none.
Result<std::unique_ptr<TokenConstraint>> NewConstraint(
    const GenerateOptions& options);

class Emitter {
 public:
  // `tokenizer` outlives the object. REQUIRES: CheckGenerate.
  Emitter(const Tokenizer& tokenizer, GenerateOptions options,
          Session::OnToken on_token,
          std::unique_ptr<TokenConstraint> constraint);

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
  // Samples and emits. `before`: the tokens that `logits` were computed from.
  std::optional<std::int32_t> Next(std::span<const float> logits,
                                   std::span<const std::int32_t> before);

  // The constraint lets nothing come any more.
  void StopForConstraint() { report_.stop = StopReason::kEndOfText; }
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
