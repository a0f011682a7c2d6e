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
#include "model/cpu/router.h"
#include "model/layer_plan.h"
#include "model/weights.h"

namespace hearth {

class Mlp {
 public:
  // All must outlive the object.
  Mlp(const ModelConfig& config, LinearRunner& linears, ThreadPool& pool);

  // Takes the memory for Run with up to n_rows rows.
  Result<void> Reserve(int n_rows);
  // in, out: [n_rows][d_model]; out must not be in. x: the residual stream, of
  // which `in` was made. REQUIRES: the memory was reserved, also that of the
  // linears.
  void Run(const LayerPlan& layer, const float* x, const float* in, int n_rows,
           float* out);

 private:
  struct Choice {
    int row;
    float weight;
  };

  void RunDense(const MlpWeights& mlp, std::int64_t width, const float* x,
                int n_rows, float* out);
  void Activate(std::int64_t width, float* gate, float* up) const;
  void RunBoth(const LayerPlan& layer, const float* x, const float* in,
               int n_rows, float* out);
  // Chosen by `routed`, given `x`.
  void RunExperts(const LayerWeights& layer, const float* routed,
                  const float* x, int n_rows, float* out);
  void AddSharedExpert(const LayerWeights& layer, const float* x, int n_rows,
                       float* out);
  void Route(const LayerWeights& layer, const float* x, int n_rows);
  void Normalize(const NormWeights& norm, const float* x, int n_rows,
                 float* out);
  void Scale(float factor, std::int64_t n, float* x);

  // Floats of a row of hidden_.
  std::int64_t HiddenWidth() const;

  const ModelConfig& config_;
  const Router router_;
  LinearRunner& linears_;
  ThreadPool& pool_;
  const Kernels& kernels_;
  AlignedBuffer hidden_;       // [n_rows][width], gated: [n_rows][2 * width]
  AlignedBuffer interleaved_;  // [n_rows][2 * width]
  AlignedBuffer scores_;       // [n_rows][n_experts]
  AlignedBuffer gathered_;     // rows of one expert, [..][d_model]
  AlignedBuffer expert_out_;   // [..][d_model]
  // Of layers with a dense network beside their experts, [n_rows][d_model].
  AlignedBuffer beside_, routed_, expert_in_;
  std::vector<std::vector<Choice>> rows_of_;  // [n_experts]
};

}  // namespace hearth
