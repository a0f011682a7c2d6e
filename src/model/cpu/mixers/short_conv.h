// LFM2's mixer: y = W_out (C * conv(B * X)), where [B | C | X] = W_in x.
//
// Exactness  a row's result is a product, a sum of n_taps terms in one order,
//            and a product: the same however the rows were cut into steps.
#pragma once

#include <span>

#include "base/thread_pool.h"
#include "kernels/kernels.h"
#include "model/cpu/aligned_buffer.h"
#include "model/cpu/linear.h"
#include "model/ops.h"

namespace hearth {

class ShortConv {
 public:
  // All must outlive the object.
  ShortConv(const ModelConfig& config, LinearRunner& linears, ThreadPool& pool);

  // Takes the memory for Run with up to n_rows rows.
  Result<void> Reserve(int n_rows);
  // x, out: [rows of all parts][d_model]; out may not be x. REQUIRES: the
  // memory was reserved, also that of the linears.
  void Run(const LayerPlan& layer, std::span<const PartRows> parts,
           const float* x, int n_rows, float* out);

 private:
  const ModelConfig& config_;
  LinearRunner& linears_;
  ThreadPool& pool_;
  const Kernels& kernels_;
  AlignedBuffer projected_;  // [n_rows][3 * d_model]
  AlignedBuffer inputs_;     // [n_rows][d_model]
  AlignedBuffer mixed_;      // [n_rows][d_model]
};

}  // namespace hearth
