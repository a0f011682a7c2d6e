// Causal convolutions of every channel alone, over a sequence's new rows and
// the last inputs that its state has.
#pragma once

#include <cstdint>

#include "base/thread_pool.h"
#include "kernels/kernels.h"
#include "model/weights.h"

namespace hearth {

// One sequence's rows. `before` and `after` are states of StateRule::
// kLastInputs, `journal` is null or has room for the inputs.
struct ConvRows {
  const float* before;  // [n_taps - 1][n_channels]
  float* after;         // the same
  float* journal;       // [n_rows][n_channels]
  const float* inputs;  // [n_rows][n_channels]
  float* out;           // the same; other memory than the inputs
  int n_rows;
};

void RunConv(const Kernels& kernels, ThreadPool& pool, const ConvWeights& conv,
             int n_taps, std::int64_t n_channels, const ConvRows& rows);

}  // namespace hearth
