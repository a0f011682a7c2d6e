// Linear layers on a device: packs the activations where a matrix is in blocks,
// and multiplies.
#pragma once

#include <cstdint>
#include <span>

#include "cuda/device.h"
#include "model/cuda/device_weights.h"

namespace hearth {

// One of up to three layers that read the same input.
struct DeviceLinearCall {
  const Linear* linear;
  float* y;  // [n_rows], rows y_stride floats apart
  std::int64_t y_stride;
};

class DeviceLinear {
 public:
  // Both must outlive the object.
  DeviceLinear(const DeviceWeights& weights, gpu::Device& device)
      : weights_(weights), device_(device), codes_(device), scales_(device) {}

  // Takes the memory for rows of up to n_in_max values.
  Result<void> Reserve(int n_rows, std::int64_t n_in_max);
  // Where a kernel leaves rows packed that Run then finds so: those of x, until
  // the next Run that multiplies blocks. REQUIRES: as Run.
  gpu::PackedRoom PackFor(const float* x) {
    packed_ = x;
    return {codes_.As<std::uint8_t>(), scales_.As<gpu::PackedScale>()};
  }
  // y = W x + bias for every call; x: rows x_stride floats apart. REQUIRES: all
  // calls have the same n_in; the memory was reserved.
  void Run(const float* x, std::int64_t x_stride, int n_rows,
           std::span<const DeviceLinearCall> calls);

 private:
  void RunBlocks(int n_rows, std::span<const DeviceLinearCall> calls);
  void RunFloats(const float* x, std::int64_t x_stride, int n_rows,
                 std::span<const DeviceLinearCall> calls);

  const DeviceWeights& weights_;
  gpu::Device& device_;
  gpu::Buffer codes_, scales_;
  const float* packed_ = nullptr;  // whose rows lie there
};

}  // namespace hearth
