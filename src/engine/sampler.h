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

// The tokens that may come next. Never empty; a greedy one has a single token.
struct Distribution {
  struct Candidate {
    float logit;
    std::int32_t id;
    double weight;  // probability x total
  };
  std::vector<Candidate> candidates;
  double total = 0;

  double Of(std::int32_t id) const;  // its probability
};

class Sampler {
 public:
  // REQUIRES: CheckSampling(options).ok().
  explicit Sampler(const SamplingOptions& options) : options_(options) {}

  std::int32_t Sample(std::span<const float> logits);

  // The two halves of Sample.
  void Filter(std::span<const float> logits, Distribution& out) const;
  std::int32_t Draw(const Distribution& distribution);

  // One step of speculative sampling (Leviathan et al. 2023, Chen et al. 2023):
  // `draft` was drawn from `q`; keeps it with probability min(1, p / q), else
  // draws from what p has more than q. The result is distributed as p.
  std::int32_t AcceptOrDraw(const Distribution& p, const Distribution& q,
                            std::int32_t draft);

 private:
  void KeepTopP(std::vector<Distribution::Candidate>& candidates) const;
  void KeepMinP(std::vector<Distribution::Candidate>& candidates) const;
  double NextUniform();  // [0, 1)

  SamplingOptions options_;
  std::uint64_t n_draws_ = 0;
  Distribution scratch_;
  std::vector<double> q_of_id_;  // all zero between calls
};

}  // namespace hearth
