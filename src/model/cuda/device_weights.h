// A model's weights in a device's memory. Matrices in blocks are repacked there
// (cuda/kernels/matrix.h); nothing of them stays in the host's.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "cuda/device.h"
#include "cuda/kernels/matrix.h"
#include "model/weights.h"

namespace hearth {

class DeviceWeights {
 public:
  // Bytes that a device needs for them.
  static std::uint64_t BytesOf(const LoadedModel& model);
  // Whether it has matrices that are stored input by input, or int4 as .tinygpt
  // files have it.
  static bool HasColumns(const LoadedModel& model);
  // Sends them. kResourceFull when the device is full; kIo when it fails.
  static Result<DeviceWeights> Send(const LoadedModel& model,
                                    gpu::Device& device);

  // REQUIRES: of the model that was sent, and not empty.
  const gpu::Matrix& Of(const WeightMatrix& w) const {
    return matrices_.at(w.data);
  }
  const float* Of(const std::vector<float>& values) const {
    return values.empty() ? nullptr : floats_.at(values.data());
  }

 private:
  Result<void> SendMatrix(const WeightMatrix& w, gpu::Device& device);
  Result<void> SendBlocks(const WeightMatrix& w, gpu::Device& device,
                          gpu::Matrix& sent);
  Result<void> SendFloats(const std::vector<float>& values,
                          gpu::Device& device);
  Result<std::uint8_t*> Take(std::uint64_t bytes, gpu::Device& device);

  std::map<const std::byte*, gpu::Matrix> matrices_;
  std::map<const float*, const float*> floats_;
  std::vector<gpu::Buffer> chunks_;
  std::uint64_t used_ = 0;  // of the last chunk
  gpu::Buffer staging_;
};

}  // namespace hearth
