// The mixer of Qwen 3.5 and 3-Next: a gated delta net. Of every token
//   [q | k | v] = silu(conv(W_qkv x)),  q = l2(q) / sqrt(key_dim),  k = l2(k)
//   decay = exp(scale softplus(W_a x + bias)),  rate = sigmoid(W_b x)
// and of every value head, whose matrix is S and whose key head DeltaNetShape
// gives,
//   S = decay S;  S = S + k (rate (v - S^T k))^T;  o = S^T q
//   out = W_out (rms(o) w silu(W_z x)).
// Source: Yang et al., Gated Delta Networks, arXiv:2412.06464.
//
// Exactness  S is updated token by token, whatever the step: the form that
//            works on chunks of tokens would tie bits to their borders.
#pragma once

#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/kernels.h"
#include "model/cpu/aligned_buffer.h"
#include "model/cpu/linear.h"
#include "model/ops.h"

namespace hearth {

class DeltaNet {
 public:
  // All must outlive the object.
  DeltaNet(const ModelConfig& config, LinearRunner& linears, ThreadPool& pool);

  // Takes the memory for Run with up to n_rows rows.
  Result<void> Reserve(int n_rows);
  // x, out: [rows of all parts][d_model]; out may not be x. REQUIRES: the
  // memory was reserved, also that of the linears.
  void Run(const LayerPlan& layer, std::span<const PartRows> parts,
           const float* x, int n_rows, float* out);

 private:
  // Of the step's rows.
  struct Buffers {
    float* channels;      // [n_rows][n_channels], before the convolution
    float* mixed;         // and behind it
    float* gate;          // [n_rows][value heads * value_dim]
    float *decay, *rate;  // [n_rows][value heads]
    float* result;        // as gate
    float* fused;         // what files have in one matrix
  };
  Buffers Take(int n_rows) const;
  void Project(const DeltaNetWeights& w, const float* x, int n_rows,
               const Buffers& to);
  void SplitKeyHeads(int n_rows, const Buffers& to);
  void SplitRates(int n_rows, const Buffers& to);
  void FinishRates(const DeltaNetWeights& w, int n_rows, const Buffers& rows);
  void NormalizeKeys(int n_rows, const Buffers& rows);
  void Update(const LayerPlan& layer, std::span<const PartRows> parts,
              const Buffers& rows);
  void KeepJournal(const PartRows& part, const Buffers& rows,
                   float* journal) const;

  std::int64_t value_width() const {
    return std::int64_t{shape_.n_value_heads} * shape_.value_dim;
  }
  std::int64_t fused_width() const {
    return shape_.n_channels() + value_width();
  }
  const float* KeyOf(const Buffers& rows, std::int64_t row, int head) const;
  const float* QueryOf(const Buffers& rows, std::int64_t row, int head) const;
  const float* ValueOf(const Buffers& rows, std::int64_t row, int head) const;

  const ModelConfig& config_;
  const DeltaNetShape& shape_;
  LinearRunner& linears_;
  ThreadPool& pool_;
  const Kernels& kernels_;
  // An RMS norm with these weights is the l2 norm, of queries over
  // sqrt(key_dim).
  std::vector<float> key_norm_, query_norm_;  // [key_dim]
  AlignedBuffer channels_, mixed_, gate_, rates_, result_, fused_;
};

}  // namespace hearth
