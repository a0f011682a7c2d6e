// The residual stream between two parts of a layer: what one part adds, the
// norm in front of the next, and the normed row made int8, one row a block of
// threads. The row lies in shared memory all the while.
#pragma once

#include "cuda/kernels/pack.h"
#include "cuda/kernels/rows.h"

namespace hearth::gpu {

struct NormRowArgs {
  float* x;            // [n_rows][n]
  const float* delta;  // is added to x before, times delta_scale; or null
  float delta_scale;   // 1: none
  int* first_bad;      // see AddArgs; with delta alone
  int layer;
  float* out;           // [n_rows][n]
  const float* weight;  // [n]
  const float* bias;    // [n] or null; layer norm alone
  int n;
  float eps;
  bool layer_norm;
  std::uint8_t* codes;  // [n_rows][n], or null: not packed
  PackedScale* scales;  // [n_rows][n / 32]
};
inline constexpr int kNormRowThreads = 512;
HEARTH_GPU constexpr int NormRowSharedBytes(int n) {
  return (PackFloats(n) + 18) * 4;
}

// total = the sixteen lanes' sum over v, as SumLanes has it.
template <class Step>
HEARTH_GPU void SumSharedLanes(const Block& block, const float* v, int n,
                               float* lanes, float* total, const Step& step) {
  block.ForThreads([&](int thread) {
    if (thread >= 16) return;
    float lane = 0.0f;
    int i = thread;
    HEARTH_GPU_UNROLL_BY(16)
    for (; i < n; i += 16) lane = step(v[i], lane);
    // Lanes past the end add a zero.
    if (i < (n + 15) / 16 * 16) lane = step.Past(lane);
    lanes[thread] = lane;
  });
  TotalOfLanes(block, lanes, total);
}

// The row to shared memory, with what is added to it.
HEARTH_GPU void LoadRow(const Block& block, const NormRowArgs& a, float* x,
                        const float* delta, float* v) {
  constexpr int kAtOnce = 8;  // on their way from memory
  block.ForThreads([&](int thread) {
    for (int first = thread; first < a.n; first += kAtOnce * kNormRowThreads) {
      float now[kAtOnce], more[kAtOnce];
      HEARTH_GPU_UNROLL
      for (int k = 0; k < kAtOnce; ++k) {
        const int i = first + k * kNormRowThreads;
        now[k] = i < a.n ? x[i] : 0.0f;
        more[k] = i < a.n && delta != nullptr ? delta[i] : 0.0f;
      }
      HEARTH_GPU_UNROLL
      for (int k = 0; k < kAtOnce; ++k) {
        const int i = first + k * kNormRowThreads;
        if (i >= a.n) break;
        float sum = now[k];
        if (delta != nullptr) {
          sum =
              sum + (a.delta_scale != 1.0f ? more[k] * a.delta_scale : more[k]);
          x[i] = sum;
          if (!IsFinite(sum)) NoteLayer(a.first_bad, a.layer);
        }
        v[i] = sum;
      }
    }
  });
  block.Sync();
}

// grid: rows. shared: NormRowSharedBytes(n).
HEARTH_GPU void NormRow(const Block& block, const NormRowArgs& a) {
  // Weights are not of this step: they may come before its rows are there.
  block.ForThreads([&](int thread) {
    for (int i = thread * 8; i < a.n; i += 8 * kNormRowThreads) {
      Prefetch(a.weight + i);
    }
  });
  block.Await();
  const std::int64_t at = std::int64_t{block.x()} * a.n;
  const PackMemory m(reinterpret_cast<float*>(block.shared()), a.n);
  float* v = m.values;
  float* lanes = v + PackFloats(a.n);
  float* total = lanes + 16;
  float* out = a.out + at;
  LoadRow(block, a, a.x + at, a.delta != nullptr ? a.delta + at : nullptr, v);
  const float size = static_cast<float>(a.n);
  if (!a.layer_norm) {
    SumSharedLanes(block, v, a.n, lanes, total, AddSquare{});
    const float inverse = Div(1.0f, Sqrt(Div(*total, size) + a.eps));
    ForItems(block, a.n, [&](std::int64_t i) {
      v[i] = (v[i] * inverse) * a.weight[i];
      out[i] = v[i];
    });
  } else {
    SumSharedLanes(block, v, a.n, lanes, total, AddValue{});
    const float mean = Div(*total, size);
    SumSharedLanes(block, v, a.n, lanes, total + 1,
                   AddSquareOfDifference{mean});
    const float inverse = Div(1.0f, Sqrt(Div(total[1], size) + a.eps));
    ForItems(block, a.n, [&](std::int64_t i) {
      const float shift = a.bias != nullptr ? a.bias[i] : 0.0f;
      v[i] = Fma((v[i] - mean) * inverse, a.weight[i], shift);
      out[i] = v[i];
    });
  }
  if (a.codes == nullptr) return;
  block.Sync();
  PackValues(block, m, a.n, reinterpret_cast<std::uint32_t*>(a.codes + at),
             a.scales + at / 32);
}

}  // namespace hearth::gpu
