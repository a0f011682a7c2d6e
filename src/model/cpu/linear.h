// Linear layers over the thread pool: prepares the activations once and splits
// output columns over the threads. What adapters add is computed beside the
// layer's own matrix, which stays as it is.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/kernels.h"
#include "model/cpu/aligned_buffer.h"
#include "model/cpu/weight_shapes.h"
#include "model/weights.h"

namespace hearth {

// One of several layers that read the same input.
struct LinearCall {
  const Linear* linear;
  float* y;               // [n_rows][y_stride]
  std::int64_t y_stride;  // floats between rows
};

// Looks at what linear layers see; changes nothing.
class LinearInputs {
 public:
  virtual ~LinearInputs() = default;
  // x: [n_rows][n_in], rows x_stride apart. On the thread that runs the step,
  // while the pool is free.
  virtual void Add(const Linear& linear, const float* x, std::int64_t x_stride,
                   int n_rows) = 0;
};

class LinearRunner {
 public:
  // `inputs` is told of every layer before it runs; mostly null.
  explicit LinearRunner(ThreadPool& pool, LinearInputs* inputs = nullptr);

  LinearInputs* inputs() const { return inputs_; }

  // Takes the memory for Run with any of these matrices and up to n_rows rows.
  Result<void> Reserve(std::span<const WeightMatrix> matrices, int n_rows,
                       const LowRanks& low_ranks = {});
  // y = W x + bias for every call; x: [n_rows][n_in], rows x_stride apart. Then
  // what adapters add, one after the other.
  // REQUIRES: all calls have the same n_in; the memory was reserved.
  void Run(const float* x, std::int64_t x_stride, int n_rows,
           std::span<const LinearCall> calls);

 private:
  // A matrix and where its product goes.
  struct Product {
    const WeightMatrix* w;
    const float* bias;  // or null
    float* y;
    std::int64_t y_stride;
  };
  // What an adapter adds to one call.
  struct Addition {
    const LowRank* low_rank;
    std::int64_t inner;  // where a row's down x begins
    std::size_t packed;  // where the packed rows of it begin
    float* y;            // of the first row of `up`
    std::int64_t y_stride;
  };

  void Multiply(const float* x, std::int64_t x_stride, int n_rows,
                std::span<const Product> products);
  void RunPacked(int n_rows, std::span<const Product> products);
  // Of the adapter with this number. REQUIRES: at most kCallsTogether calls.
  void AddAdapter(int adapter, const float* x, std::int64_t x_stride,
                  int n_rows, std::span<const LinearCall> calls);
  void PackInner(int n_rows, std::int64_t n_inner);
  void AddProducts(int n_rows);
  // Of n outputs of `up` from `first` on.
  void AddRows(const Addition& addition, std::int64_t first, std::int64_t n,
               int n_rows, std::size_t thread);

  ThreadPool& pool_;
  const Kernels& kernels_;
  LinearInputs* const inputs_;
  AlignedBuffer packed_;
  std::vector<AlignedBuffer> scratch_;  // one per thread
  std::vector<Product> products_;
  // Where there are adapters: what their first matrices give, and of each
  // thread its part of what is added.
  AlignedBuffer inner_, packed_inner_;
  std::vector<AlignedBuffer> added_;
  std::vector<Addition> additions_;
};

}  // namespace hearth
