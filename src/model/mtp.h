// A multi-token-prediction block: one layer behind a model that guesses the
// token after the next one from the hidden state which the last logits were
// computed from (behind the final norm) and the token that these gave:
//   x  = fc [norm_e embedding(token); norm_h hidden]
//   h' = norm(layer(x)),  head h' are the guess's logits
// Repeated with h' and the guess it guesses further. It has keys and values of
// its own, of the pairs that it has seen.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hearth/result.h"
#include "model/cpu/linear.h"
#include "model/forward.h"
#include "model/weights.h"

namespace hearth {

// Move-only; the matrices lie in the files of `model`.
struct MtpBlock {
  LoadedModel model;  // of one layer, with the large model's embedding and head
  Linear fc;          // [d_model, 2 * d_model]
  NormWeights embedding_norm, hidden_norm;
};

// Runs a block over the model's thread pool, one pair at a time, for any number
// of sequences.
class MtpRunner {
 public:
  // `base`, whose block it is, and `pool` outlive the object.
  MtpRunner(MtpBlock block, const LoadedModel& base, ThreadPool& pool);

  const ModelConfig& config() const { return block_.model.config; }

  // Appends the pair to `kv`, a sequence of config(). hidden: [d_model], of the
  // token before `token`. kInvalidArgument, kResourceFull, kCorrupt as
  // Forward::Step.
  Result<void> Append(KvPort& kv, std::span<const float> hidden,
                      std::int32_t token);
  // The same, with a guess for what follows `token`.
  Result<std::int32_t> Guess(KvPort& kv, std::span<const float> hidden,
                             std::int32_t token);
  // Of the last guess.
  std::span<const float> hidden() const { return hidden_; }  // [d_model]
  std::span<const float> logits() const { return logits_; }  // [vocab_size]

 private:
  Result<void> Run(KvPort& kv, std::span<const float> hidden,
                   std::int32_t token, LogitRows want);
  // Normalises `n` into `out`.
  void Normalize(const NormWeights& norm, const float* x, float* out) const;

  MtpBlock block_;
  const LoadedModel& base_;
  const Kernels& kernels_;
  LinearRunner linears_;
  std::vector<float> pair_;   // [2 * d_model]
  std::vector<float> input_;  // [d_model], the block's embedding of token 0
  std::vector<float> hidden_, logits_;
  Forward forward_;
};

}  // namespace hearth
