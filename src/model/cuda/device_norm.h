// The residual stream between the parts of a layer on a device: what a part
// adds to it, and the norm in front of the next.
#pragma once

#include <cstdint>
#include <optional>

#include "cuda/kernels/norm_row.h"
#include "model/config.h"
#include "model/cuda/device_linear.h"
#include "model/cuda/device_weights.h"

namespace hearth {

class DeviceNorm {
 public:
  // All must outlive the object.
  DeviceNorm(const ModelConfig& config, const DeviceWeights& weights,
             DeviceLinear& linears, gpu::Device& device)
      : config_(config),
        weights_(weights),
        linears_(linears),
        device_(device) {}

  // A sum of a step that failed is never made.
  void Forget() { waits_.reset(); }
  // The next norm of args.to makes the sum, where the next thing is one.
  void AddLater(const gpu::AddArgs& args) {
    Settle();
    waits_ = args;
  }
  // A sum that waits for a norm which does not come.
  void Settle();
  // x, out: [n_rows][d_model]; the rows are packed, too, for products that read
  // them. `first_bad`: of a sum that waited.
  void Run(const NormWeights& norm, float* x, float* out, int n_rows,
           int* first_bad);
  // Runs of heads, n_runs of each row.
  void RunHeads(const gpu::NormArgs& args, int n_rows, unsigned n_runs);

 private:
  const ModelConfig& config_;
  const DeviceWeights& weights_;
  DeviceLinear& linears_;
  gpu::Device& device_;
  std::optional<gpu::AddArgs> waits_;
};

}  // namespace hearth
