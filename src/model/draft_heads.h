// Draft heads: small networks beside a model that guess further tokens from the
// hidden state which its last logits were computed from. Two kinds:
//   Medusa      head k, from 0: W_out_k (silu(W_res_k h + b_res_k) + h) are the
//               logits of the token k + 2 places after the one that h is of
//   EAGLE-lite  h' = LayerNorm(silu(W_2 silu(W_1 [h; embedding(token)])) + h)
//               stands for the hidden state after one more token, and W_out h'
//               are its logits; repeated, it guesses as far as one likes
// Files: docs/formats/heads.md, read by formats/tinygpt/heads_file.h.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "hearth/result.h"
#include "model/cpu/linear.h"
#include "model/weights.h"

namespace hearth {

enum class DraftHeadsKind : std::uint8_t { kMedusa, kEagle };

struct MedusaHead {
  Linear res;  // [d_model, d_model], with bias
  Linear out;  // [vocab_size, d_model]
};

struct EagleHead {
  Linear fc1;        // [hidden_dim, 2 * d_model]
  Linear fc2;        // [d_model, hidden_dim]
  NormWeights norm;  // layer norm, epsilon 1e-5
  Linear out;        // [vocab_size, d_model]
};

// Move-only; the matrices lie in `file`.
struct DraftHeads {
  DraftHeadsKind kind = DraftHeadsKind::kMedusa;
  std::vector<MedusaHead> medusa;
  EagleHead eagle;
  MappedFile file;
};

// Runs heads over the model's thread pool, one token at a time.
class DraftHeadsRunner {
 public:
  // All of them outlive the object. `base`: the model that the heads are for.
  DraftHeadsRunner(const DraftHeads& heads, const LoadedModel& base,
                   ThreadPool& pool);

  // The likeliest tokens behind `token`, at most n (Medusa: as many as there
  // are heads). hidden: [d_model], of the token before `token`, after the final
  // norm. kResourceFull when there is no memory.
  Result<void> Guess(std::span<const float> hidden, std::int32_t token, int n,
                     std::vector<std::int32_t>& guesses);

 private:
  std::int32_t Best(const Linear& out, const float* h);
  void Silu(std::vector<float>& x);
  void Run(const Linear& linear, const float* x, std::vector<float>& y);

  const DraftHeads& heads_;
  const LoadedModel& base_;
  const Kernels& kernels_;
  LinearRunner linears_;
  std::vector<WeightMatrix> matrices_;  // that linears_ multiplies with
  std::vector<float> ones_, inner_, state_, input_, logits_;
};

}  // namespace hearth
