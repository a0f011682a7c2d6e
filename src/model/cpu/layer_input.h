// A token's second embedding, of which each layer has its own part (Gemma 3n
// and 4): looked up and made from the first one once a step, and added by each
// layer behind its feed-forward half.
//   input[l] = (table[token][l] sqrt(n) + rms((W x) / sqrt(d))[l] w) / sqrt(2)
//   x += norm(W_up (gelu(W_gate x) input[l]))
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/kernels.h"
#include "model/cpu/aligned_buffer.h"
#include "model/cpu/linear.h"
#include "model/layer_plan.h"

namespace hearth {

class LayerInput {
 public:
  // All must outlive the object.
  LayerInput(const LoadedModel& model, LinearRunner& linears, ThreadPool& pool);

  // Floats of a row: those of all layers; 0 in other models.
  std::int64_t width() const {
    return std::int64_t{config_.n_layers} * config_.d_layer_input;
  }
  // Takes the memory for up to n_rows rows.
  Result<void> Reserve(int n_rows);
  // x: [rows][d_model], the tokens' embeddings; inputs: [rows][width].
  void Make(std::span<const std::int32_t> tokens, const float* x,
            float* inputs);
  // What the layer adds, [n_rows][d_model], until the next call.
  const float* Run(const LayerPlan& layer, const float* inputs, const float* x,
                   int n_rows);

 private:
  const LoadedModel& model_;
  const ModelConfig& config_;
  LinearRunner& linears_;
  ThreadPool& pool_;
  const Kernels& kernels_;
  AlignedBuffer gate_;       // [n_rows][d_layer_input]
  AlignedBuffer added_;      // [n_rows][d_model]
  AlignedBuffer looked_up_;  // of each row, [width]
};

}  // namespace hearth
