// The answer as it grows: sends sampled tokens to the caller, decides when it
// is over, and keeps the report.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/stopwatch.h"
#include "engine/sampler.h"
#include "hearth/engine.h"
#include "text/tokenizer.h"

namespace hearth {

struct EngineParts;

class Emitter {
 public:
  // All of them outlive the object.
  Emitter(const EngineParts& parts, const GenerateOptions& options,
          const Session::OnToken& on_token);

  Sampler& sampler() { return sampler_; }
  SpeculationReport& speculation() { return report_.speculation; }
  // Tokens that may still come.
  int n_left() const {
    return options_.n_tokens_max - static_cast<int>(report_.token_ids.size());
  }

  // Emits a sampled token. The token itself when the answer goes on after it;
  // nothing when it is over.
  std::optional<std::int32_t> Emit(std::int32_t id);
  // Samples and emits.
  std::optional<std::int32_t> Next(std::span<const float> logits) {
    return Emit(sampler_.Sample(logits));
  }

  void StopForCaller() { report_.stop = StopReason::kCaller; }
  void StopForContext() { report_.stop = StopReason::kContext; }
  GenerateReport Finish();

 private:
  std::string Release(const std::string& text, bool& stopped);

  const EngineParts& parts_;
  const GenerateOptions& options_;
  const Session::OnToken& on_token_;
  Sampler sampler_;
  StreamDecoder decoder_;
  std::string held_;  // decoded, not yet shown
  GenerateReport report_;
  Stopwatch clock_;
};

}  // namespace hearth
