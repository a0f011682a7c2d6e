// Multi-head latent attention (DeepSeek V2), in the form that keeps kv_rank +
// rope_dim numbers of a token for all heads: queries are turned into the kept
// space, and what is attended to is turned into the heads' values behind it.
//   q = W_q x (or W_qb rms(W_qa x)), of each head [q_n | q_r]
//   [c | k_r] = W_kv x;  kept: [rms(c) | k_r],  asked: [W_k^T q_n | q_r]
//   result of a head: W_v (sum of weights times c)
// q_r and k_r turn with their positions.
// Source: DeepSeek-AI, DeepSeek-V2, arXiv:2405.04434, section 2.1.
#pragma once

#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/kernels.h"
#include "model/cpu/aligned_buffer.h"
#include "model/cpu/linear.h"
#include "model/layer_plan.h"

namespace hearth {

class Latent {
 public:
  // All must outlive the object.
  Latent(const ModelConfig& config, LinearRunner& linears, ThreadPool& pool);

  // Takes the memory for up to n_rows rows; nothing in other models.
  Result<void> Reserve(std::span<const LayerPlan> layers, int n_rows);
  // x: [n_rows][d_model]; qkv: [n_rows][LayerPlan::qkv_dim], not turned yet.
  void Project(const LayerPlan& layer, const float* x, int n_rows, float* qkv);
  // attended: [n_rows][q_dim], of each head what it saw in the kept space. The
  // heads' values, [n_rows][n_heads * LatentShape::value_dim], until the next
  // call.
  const float* Values(const LayerPlan& layer, const float* attended,
                      int n_rows);

 private:
  // One matrix of each head: rows of x and y are `stride` floats apart, heads
  // `step`.
  struct HeadRows {
    std::int64_t stride, step;
  };
  void RunHeads(const std::vector<Linear>& heads, const float* x, HeadRows in,
                int n_rows, float* y, HeadRows out);
  std::int64_t queries_width() const {
    return std::int64_t{config_.n_heads} * shape_.query_dim();
  }

  const ModelConfig& config_;
  const LatentShape& shape_;
  LinearRunner& linears_;
  ThreadPool& pool_;
  const Kernels& kernels_;
  AlignedBuffer down_, queries_, values_;
  // Of each thread: packed rows of one head, and room to multiply.
  std::vector<AlignedBuffer> packed_, scratch_;
};

}  // namespace hearth
