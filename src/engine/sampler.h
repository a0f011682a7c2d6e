// Picks the next token from logits.
//
// Order  temperature, top-k, top-p, min-p, then one draw. Greedy (temperature
//        0) takes the first largest logit and draws nothing.
// The random stream is a function of the seed and the number of draws alone,
// the same on every platform.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hearth/options.h"
#include "hearth/result.h"

namespace hearth {

// kInvalidArgument for a negative temperature, top_p outside (0, 1], ...
Result<void> CheckSampling(const SamplingOptions& options);

class Sampler {
 public:
  // REQUIRES: CheckSampling(options).ok().
  explicit Sampler(const SamplingOptions& options) : options_(options) {}

  std::int32_t Sample(std::span<const float> logits);

 private:
  struct Candidate {
    float logit;
    std::int32_t id;
    double weight;  // unnormalised probability
  };

  void KeepTopK();
  void KeepTopP();
  void KeepMinP();
  double NextUniform();  // [0, 1)

  SamplingOptions options_;
  std::uint64_t n_draws_ = 0;
  std::vector<Candidate> candidates_;
};

}  // namespace hearth
