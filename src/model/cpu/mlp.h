// The feed-forward half of a layer: one dense network, or a few of many
// experts, chosen for each token by a router.
//
// Exactness  rows of one expert run together, but each row's result is that of
//            the row alone: matrix products do not depend on their neighbours,
//            and a row adds its experts in rising order of their numbers.
#pragma once

#include <cstdint>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/kernels.h"
#include "model/cpu/aligned_buffer.h"
#include "model/cpu/linear.h"
#include "model/weights.h"

namespace hearth {

class Mlp {
 public:
  // All must outlive the object.
  Mlp(const ModelConfig& config, LinearRunner& linears, ThreadPool& pool);

  // Takes the memory for Run with up to n_rows rows.
  Result<void> Reserve(int n_rows);
  // x, out: [n_rows][d_model]; out must not be x. REQUIRES: the memory was
  // reserved, also that of the linears.
  void Run(const LayerWeights& layer, const float* x, int n_rows, float* out);

 private:
  struct Choice {
    int row;
    float weight;
  };

  void RunDense(const MlpWeights& mlp, std::int64_t width, const float* x,
                int n_rows, float* out);
  void Activate(std::int64_t width, float* gate, float* up) const;
  void RunExperts(const LayerWeights& layer, const float* x, int n_rows,
                  float* out);
  void AddSharedExpert(const LayerWeights& layer, const float* x, int n_rows,
                       float* out);
  void Route(const LayerWeights& layer, const float* x, int n_rows);

  // Floats of a row of hidden_.
  std::int64_t HiddenWidth() const;

  const ModelConfig& config_;
  LinearRunner& linears_;
  ThreadPool& pool_;
  const Kernels& kernels_;
  AlignedBuffer hidden_;       // [n_rows][width], gated: [n_rows][2 * width]
  AlignedBuffer interleaved_;  // [n_rows][2 * width]
  AlignedBuffer scores_;       // [n_rows][n_experts]
  AlignedBuffer gathered_;     // rows of one expert, [..][d_model]
  AlignedBuffer expert_out_;   // [..][d_model]
  std::vector<std::vector<Choice>> rows_of_;  // [n_experts]
};

// The n_used largest of `scores` (of equal ones the first) and their weights,
// by rising index. Fills chosen[n_used] and weights[n_used].
void ChooseExperts(const float* scores, int n_experts, int n_used,
                   RouterKind kind, int* chosen, float* weights);

}  // namespace hearth
