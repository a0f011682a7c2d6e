// Keys and values written to a sequence's blocks on a device, and attention
// over them.
#pragma once

#include <cstdint>
#include <span>

#include "cuda/device.h"
#include "model/cuda/device_weights.h"
#include "model/cuda/step_data.h"

namespace hearth {

// The rows that one layer attends with; see AttentionCall.
struct DeviceAttentionCall {
  const LayerPlan& layer;
  const float* q;
  std::int64_t q_stride;
  const float* q_sink;
  std::int64_t sink_stride;
  float* out;  // [n_rows][n_heads * head_dim]
};

class DeviceAttention {
 public:
  // All must outlive the object.
  DeviceAttention(const ModelConfig& config, const DeviceWeights& weights,
                  const StepData& step, gpu::Device& device)
      : config_(config),
        weights_(weights),
        step_(step),
        device_(device),
        states_(device) {}

  // Takes the memory that steps need whose segments run side by side.
  Result<void> Reserve(std::span<const LayerPlan> layers);
  // qkv: [n_rows][LayerPlan::qkv_dim]; `turn`: queries and keys are turned
  // before, null: they are already.
  void Write(const LayerPlan& layer, const StepBatch& batch, float* qkv,
             const gpu::RopeArgs* turn);
  void Run(const StepBatch& batch, const DeviceAttentionCall& call);

 private:
  static constexpr int kStateSegmentsMax = 4096;  // tasks times segments

  gpu::AttendArgs ArgsOf(const StepBatch& batch,
                         const DeviceAttentionCall& call,
                         const AttendShape& shape) const;

  const ModelConfig& config_;
  const DeviceWeights& weights_;
  const StepData& step_;
  gpu::Device& device_;
  gpu::Buffer states_;
};

}  // namespace hearth
