// Linear layers over the thread pool: prepares the activations once and splits
// output columns over the threads.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/kernels.h"
#include "model/weights.h"

namespace hearth {

// A 64-byte aligned, growing buffer. Contents are lost on growth.
class AlignedBuffer {
 public:
  ~AlignedBuffer();
  AlignedBuffer() = default;
  AlignedBuffer(AlignedBuffer&& other) noexcept;
  AlignedBuffer& operator=(AlignedBuffer&&) = delete;
  std::byte* Get(std::size_t size);
  float* GetFloats(std::size_t n) {
    return reinterpret_cast<float*>(Get(n * sizeof(float)));
  }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

// One of several layers that read the same input.
struct LinearCall {
  const Linear* linear;
  float* y;               // [n_rows][y_stride]
  std::int64_t y_stride;  // floats between rows
};

class LinearRunner {
 public:
  explicit LinearRunner(ThreadPool& pool);

  // y = W x + bias for every call; x: [n_rows][n_in], rows x_stride apart.
  // REQUIRES: all calls have the same n_in.
  void Run(const float* x, std::int64_t x_stride, int n_rows,
           std::span<const LinearCall> calls);

 private:
  void RunPacked(int n_rows, std::span<const LinearCall> calls);

  ThreadPool& pool_;
  const Kernels& kernels_;
  AlignedBuffer packed_;
  std::vector<AlignedBuffer> scratch_;  // one per thread
};

}  // namespace hearth
