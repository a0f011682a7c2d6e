// The mixer of Nemotron-H, Granite 4 and Falcon-H1: Mamba-2. Of every token
//   [z | channels | steps] = W_in x
//   [X | write | read] = silu(conv(channels) + bias)
//   step = softplus(step + bias),  decay = exp(scale step)
// and of every head, whose matrix is S and whose group gives write and read,
//   S = decay S + write (step X)^T;  o = S^T read + skip X
//   out = W_out (rms(o silu(z)) w), the norm over each group's heads.
// Source: Dao and Gu, Transformers are SSMs, arXiv:2405.21060.
//
// Exactness  S is updated token by token, whatever the step.
#pragma once

#include <span>

#include "base/thread_pool.h"
#include "kernels/kernels.h"
#include "model/cpu/aligned_buffer.h"
#include "model/cpu/linear.h"
#include "model/ops.h"

namespace hearth {

class Mamba2 {
 public:
  // All must outlive the object.
  Mamba2(const ModelConfig& config, LinearRunner& linears, ThreadPool& pool);

  // Takes the memory for Run with up to n_rows rows.
  Result<void> Reserve(int n_rows);
  // x, out: [rows of all parts][d_model]; out may not be x, and is added to
  // when `adds`. REQUIRES: the memory was reserved, also that of the linears.
  void Run(const LayerPlan& layer, std::span<const PartRows> parts,
           const float* x, int n_rows, bool adds, float* out);

 private:
  // Of the step's rows.
  struct Buffers {
    float* projected;  // [n_rows][n_projected]
    float* channels;   // [n_rows][n_channels], before the convolution
    float* mixed;      // and behind it
    float* inputs;     // [n_rows][width], X times the steps
    float* decay;      // [n_rows][n_heads]
    float* result;     // [n_rows][width]
    float* added;      // [n_rows][d_model]
  };
  Buffers Take(int n_rows) const;
  void Project(const Mamba2Weights& w, const float* x, int n_rows,
               const Buffers& rows);
  void Convolve(const LayerPlan& layer, std::span<const PartRows> parts,
                const Buffers& rows);
  void TakeSteps(const Mamba2Weights& w, int n_rows, const Buffers& rows);
  void Update(const LayerPlan& layer, std::span<const PartRows> parts,
              const Buffers& rows);
  void KeepJournal(const PartRows& part, const Buffers& rows,
                   float* journal) const;
  void Finish(const Mamba2Weights& w, int n_rows, const Buffers& rows);
  const float* WriteOf(const Buffers& rows, std::int64_t row, int head) const;
  const float* ReadOf(const Buffers& rows, std::int64_t row, int head) const;

  const ModelConfig& config_;
  const Mamba2Shape& shape_;
  LinearRunner& linears_;
  ThreadPool& pool_;
  const Kernels& kernels_;
  AlignedBuffer projected_, channels_, mixed_, inputs_, decay_, result_, added_;
};

}  // namespace hearth
