// What stands around attention: queries, keys and values of rows, their norms,
// and what the heads' results add to the residual stream.
#pragma once

#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/kernels.h"
#include "model/cpu/aligned_buffer.h"
#include "model/cpu/latent.h"
#include "model/cpu/linear.h"
#include "model/layer_plan.h"

namespace hearth {

class Projection {
 public:
  // All must outlive the object.
  Projection(const ModelConfig& config, LinearRunner& linears,
             ThreadPool& pool);

  // Takes the memory for up to n_rows rows.
  Result<void> Reserve(std::span<const LayerPlan> layers, int n_rows);
  // x: [n_rows][d_model]; qkv: [n_rows][LayerPlan::qkv_dim]; gate:
  // [n_rows][q_dim], written with ModelConfig::attention_gate.
  void Run(const LayerPlan& layer, const float* x, int n_rows, float* qkv,
           float* gate);
  void NormalizeHeads(const LayerPlan& layer, int n_rows, float* qkv);
  // attended: [n_rows][q_dim]; out: [n_rows][d_model].
  void Output(const LayerPlan& layer, const float* attended, int n_rows,
              float* out);

 private:
  void SplitGates(const LayerPlan& layer, const float* both, int n_rows,
                  float* qkv, float* gate);

  const ModelConfig& config_;
  LinearRunner& linears_;
  ThreadPool& pool_;
  const Kernels& kernels_;
  Latent latent_;
  AlignedBuffer gated_queries_;  // [n_rows][2 * q_dim]
  std::vector<float> ones_;      // [largest value_dim]
};

}  // namespace hearth
