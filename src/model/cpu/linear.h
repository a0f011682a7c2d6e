// Linear layers over the thread pool: prepares the activations once and splits
// output columns over the threads.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/kernels.h"
#include "model/cpu/aligned_buffer.h"
#include "model/weights.h"

namespace hearth {

// One of several layers that read the same input.
struct LinearCall {
  const Linear* linear;
  float* y;               // [n_rows][y_stride]
  std::int64_t y_stride;  // floats between rows
};

class LinearRunner {
 public:
  explicit LinearRunner(ThreadPool& pool);

  // Takes the memory for Run with any of these matrices and up to n_rows rows.
  Result<void> Reserve(std::span<const WeightMatrix> matrices, int n_rows);
  // y = W x + bias for every call; x: [n_rows][n_in], rows x_stride apart.
  // REQUIRES: all calls have the same n_in; the memory was reserved.
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
