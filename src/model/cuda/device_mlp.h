// The dense feed-forward half of a layer on a device.
#pragma once

#include "cuda/device.h"
#include "model/config.h"
#include "model/cuda/device_linear.h"

namespace hearth {

class DeviceMlp {
 public:
  // All must outlive the object.
  DeviceMlp(const ModelConfig& config, DeviceLinear& linears,
            gpu::Device& device)
      : config_(config),
        linears_(linears),
        device_(device),
        hidden_(device),
        pairs_(device) {}

  // Takes the memory for Run with up to n_rows rows.
  Result<void> Reserve(int n_rows);
  // x, out: [n_rows][d_model]; out must not be x. REQUIRES: the memory was
  // reserved, also that of the linears.
  void Run(const MlpWeights& mlp, const float* x, int n_rows, float* out);

 private:
  const ModelConfig& config_;
  DeviceLinear& linears_;
  gpu::Device& device_;
  gpu::Buffer hidden_, pairs_;  // [n_rows][2 * d_mlp]
};

}  // namespace hearth
