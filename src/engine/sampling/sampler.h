// Picks the next token from logits: the order of hearth/options.h, then one
// draw.
//
// The random stream is a function of the seed and the number of draws alone,
// the same on every platform: each token takes one (greedy: none), and XTC one
// before it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/sampling/distribution.h"
#include "hearth/constraint.h"
#include "hearth/options.h"
#include "text/tokenizer.h"

namespace hearth {

class Sampler {
 public:
  // `tokenizer` outlives the object; it reads DRY's sequence breakers, and a
  // constraint's masks have a bit for each of its ids. Both may be null, but a
  // constraint needs it. REQUIRES: CheckSampling(options).ok().
  explicit Sampler(const SamplingOptions& options,
                   const Tokenizer* tokenizer = nullptr,
                   std::unique_ptr<TokenConstraint> constraint = nullptr);

  // `before`: the tokens that `logits`, [n_vocab], were computed from. Nothing
  // when the constraint lets nothing come any more.
  std::optional<std::int32_t> Sample(std::span<const float> logits,
                                     std::span<const std::int32_t> before);
  // `id` was sampled and is part of the answer.
  void Keep(std::int32_t id);

  // The two halves of Sample.
  void Filter(std::span<const float> logits,
              std::span<const std::int32_t> before, Distribution& out);
  // REQUIRES: a candidate.
  std::int32_t Draw(const Distribution& distribution);

  // One step of speculative sampling (Leviathan et al. 2023, Chen et al. 2023):
  // `draft` was drawn from `q`; keeps it with probability min(1, p / q), else
  // draws from what p has more than q. The result is distributed as p.
  // REQUIRES: candidates of both.
  std::int32_t AcceptOrDraw(const Distribution& p, const Distribution& q,
                            std::int32_t draft);

  // Guesses ahead: what it keeps is forgotten at its end.
  class Ahead {
   public:
    explicit Ahead(Sampler& sampler);
    ~Ahead();
    Ahead(const Ahead&) = delete;
    Ahead& operator=(const Ahead&) = delete;

    // As the sampler's, for a guess drawn from a draft's logits; XTC, which
    // decides by a draw, is the verification's.
    void Filter(std::span<const float> logits,
                std::span<const std::int32_t> before, Distribution& out);
    // Whether `id` may come after what was kept; keeps it then.
    bool Keep(std::int32_t id);

   private:
    Sampler& sampler_;
    const int mark_;
  };

 private:
  // Sets mask_; false: nothing may come. REQUIRES: a constraint.
  bool MaskNext();
  // With bias, penalties and mask; empty when nothing may come.
  std::span<const float> Adjusted(std::span<const float> logits,
                                  std::span<const std::int32_t> before);
  // All but XTC.
  void FilterFirst(std::span<const float> logits,
                   std::span<const std::int32_t> before, Distribution& out);
  double NextUniform();  // [0, 1)

  const SamplingOptions options_;
  const Tokenizer* const tokenizer_;
  const std::unique_ptr<TokenConstraint> constraint_;
  const bool adjusts_;  // logits are not taken as they are
  std::uint64_t n_draws_ = 0;
  std::vector<std::uint64_t> mask_;
  std::vector<float> adjusted_;
  Distribution scratch_;
  std::vector<double> q_of_id_;  // all zero between calls
};

}  // namespace hearth
