// Work on rows of floats: norms, rotation, activations, sums; the operations
// and orders of generic/rows.inl.
#pragma once

#include "cuda/kernels/pack.h"

namespace hearth::gpu {

// --- Norms -------------------------------------------------------------------
// Each block one run of n floats: run y of row x of the grid.
struct NormArgs {
  const float* x;
  std::int64_t x_row, x_run;  // floats from one row, one run to the next
  float* out;                 // may be x
  std::int64_t out_row, out_run;
  const float* weight;  // [n]
  const float* bias;    // [n] or null; layer norm alone
  std::int64_t n;
  float eps;
  bool layer_norm;
};
inline constexpr int kNormThreads = 128;
inline constexpr int kNormChunk = 2048;
inline constexpr int kNormSharedBytes = (kNormChunk + 16 + 2) * 4;

// The tree over sixteen lanes that lie in shared memory.
HEARTH_GPU void TotalOfLanes(const Block& block, const float* lanes,
                             float* total) {
  block.Sync();
  block.ForThreads([&](int thread) {
    if (thread != 0) return;
    float all[16];
    HEARTH_GPU_UNROLL
    for (int i = 0; i < 16; ++i) all[i] = lanes[i];
    *total = ReduceLanes(all);
  });
  block.Sync();
}

// lanes[i % 16] = step(x[i], lanes[i % 16]) for all i in rising order, then the
// tree; the result lies in *total.
template <class Step>
HEARTH_GPU void SumLanes(const Block& block, const float* x, std::int64_t n,
                         float* chunk, float* lanes, float* total,
                         const Step& step) {
  block.ForThreads([&](int thread) {
    if (thread < 16) lanes[thread] = 0.0f;
  });
  for (std::int64_t first = 0; first < n; first += kNormChunk) {
    const int size =
        n - first < kNormChunk ? static_cast<int>(n - first) : kNormChunk;
    block.Sync();
    ForItems(block, size, [&](std::int64_t i) { chunk[i] = x[first + i]; });
    block.Sync();
    block.ForThreads([&](int thread) {
      if (thread >= 16) return;
      float lane = lanes[thread];
      int i = thread;
      HEARTH_GPU_UNROLL_BY(8)
      for (; i < size; i += 16) lane = step(chunk[i], lane);
      // Lanes past the end add a zero.
      if (i < (size + 15) / 16 * 16) lane = step.Past(lane);
      lanes[thread] = lane;
    });
  }
  TotalOfLanes(block, lanes, total);
}

struct AddSquare {
  HEARTH_GPU float operator()(float v, float lane) const {
    return Fma(v, v, lane);
  }
  HEARTH_GPU float Past(float lane) const { return Fma(0.0f, 0.0f, lane); }
};
struct AddValue {
  HEARTH_GPU float operator()(float v, float lane) const { return lane + v; }
  HEARTH_GPU float Past(float lane) const { return lane + 0.0f; }
};
struct AddSquareOfDifference {
  float mean;
  HEARTH_GPU float operator()(float v, float lane) const {
    const float d = v - mean;
    return Fma(d, d, lane);
  }
  HEARTH_GPU float Past(float lane) const { return Fma(0.0f, 0.0f, lane); }
};

// grid: (rows, runs). shared: kNormSharedBytes.
HEARTH_GPU void Norm(const Block& block, const NormArgs& a) {
  block.Await();
  const float* x = a.x + block.x() * a.x_row + block.y() * a.x_run;
  float* out = a.out + block.x() * a.out_row + block.y() * a.out_run;
  float* chunk = reinterpret_cast<float*>(block.shared());
  float* lanes = chunk + kNormChunk;
  float* total = lanes + 16;
  const float size = static_cast<float>(a.n);
  if (!a.layer_norm) {
    SumLanes(block, x, a.n, chunk, lanes, total, AddSquare{});
    const float inverse = Div(1.0f, Sqrt(Div(*total, size) + a.eps));
    ForItems(block, a.n,
             [&](std::int64_t i) { out[i] = (x[i] * inverse) * a.weight[i]; });
    return;
  }
  SumLanes(block, x, a.n, chunk, lanes, total, AddValue{});
  const float mean = Div(*total, size);
  SumLanes(block, x, a.n, chunk, lanes, total + 1, AddSquareOfDifference{mean});
  const float inverse = Div(1.0f, Sqrt(Div(total[1], size) + a.eps));
  ForItems(block, a.n, [&](std::int64_t i) {
    const float shift = a.bias != nullptr ? a.bias[i] : 0.0f;
    out[i] = Fma((x[i] - mean) * inverse, a.weight[i], shift);
  });
}

// --- Rotation ----------------------------------------------------------------
struct RopeArgs {
  const float* from;  // queries that are not rotated yet; `heads` if null
  std::int64_t from_stride;
  float* heads;  // of a row: n_heads heads
  std::int64_t stride;
  int n_heads, n_grown;  // the first n_grown of them also grow
  int head_dim, rotary_dim;
  bool interleaved;
  const float *cos, *sin;  // [n_rows][rotary_dim / 2]
  const float* growth;     // [n_rows], or null
};
inline constexpr int kRopeThreads = 64;

// One head of a row, `in` to `out`, which may be one: a thread reads and writes
// its own pair.
HEARTH_GPU void TurnHead(const Block& block, const RopeArgs& a,
                         std::int64_t row, int head, const float* in,
                         float* out) {
  const int pairs = a.rotary_dim / 2;
  const bool grows = a.growth != nullptr && head < a.n_grown;
  const float factor = grows ? a.growth[row] : 1.0f;
  ForItems(block, pairs, [&](std::int64_t i) {
    const std::int64_t first = a.interleaved ? 2 * i : i;
    const std::int64_t second = a.interleaved ? 2 * i + 1 : i + pairs;
    const float x = in[first], y = in[second];
    const float c = a.cos[row * pairs + i], s = a.sin[row * pairs + i];
    const float turned_x = Fma(-y, s, x * c);
    const float turned_y = Fma(x, s, y * c);
    out[first] = grows ? turned_x * factor : turned_x;
    out[second] = grows ? turned_y * factor : turned_y;
  });
  ForItems(block, a.head_dim - a.rotary_dim, [&](std::int64_t i) {
    const float x = in[a.rotary_dim + i];
    out[a.rotary_dim + i] = grows ? x * factor : x;
  });
}

// grid: (n_heads, rows). Each block one head.
HEARTH_GPU void Rope(const Block& block, const RopeArgs& a) {
  block.Await();
  const std::int64_t row = block.y();
  const std::int64_t head = std::int64_t{block.x()} * a.head_dim;
  float* out = a.heads + row * a.stride + head;
  const float* in =
      a.from == nullptr ? out : a.from + row * a.from_stride + head;
  TurnHead(block, a, row, static_cast<int>(block.x()), in, out);
}

// --- Elementwise -------------------------------------------------------------
enum class Activation : std::uint8_t {
  kGatedSilu,
  kGeluErf,
  kGeluTanh,
  kGatedGeluTanh,
  kClampedSwiglu,
  kSigmoidGate,  // up times the sigmoid of gate
};
struct ActivateArgs {
  Activation kind;
  const float* gate;  // kinds with a gate
  float* up;          // in and out
  std::int64_t gate_stride, up_stride;
  std::int64_t width;
  // Gate and up alternate in rows of 2 * width from `gate` on.
  bool interleaved;
  // Null, or where the results go, packed, in place of `up`.
  std::uint8_t* codes;  // [n_rows][width]
  PackedScale* scales;  // [n_rows][width / 32]
};
inline constexpr int kElementThreads = 256;
static_assert(kElementThreads == kPackValues);

HEARTH_GPU float Activated(Activation kind, float gate, float up) {
  switch (kind) {
    case Activation::kGatedSilu:
      return Silu(gate) * up;
    case Activation::kGeluErf:
      return GeluErf(up);
    case Activation::kGeluTanh:
      return GeluTanh(up);
    case Activation::kGatedGeluTanh:
      return up * GeluTanh(gate);
    case Activation::kClampedSwiglu: {
      // The order of comparisons is std::min's and std::clamp's.
      const float g = 1.702f * (7.0f < gate ? 7.0f : gate);
      const float bounded = up < -7.0f ? -7.0f : 7.0f < up ? 7.0f : up;
      return Silu(g) * Div(bounded + 1.0f, 1.702f);
    }
    case Activation::kSigmoidGate:
      return Div(up, 1.0f + Exp(0.0f - gate));
  }
  return up;
}

// grid: (width / kElementThreads rounded up, rows). shared: kPackSharedBytes.
HEARTH_GPU void Activate(const Block& block, const ActivateArgs& a) {
  block.Await();
  const std::int64_t row = block.y();
  const std::int64_t first = std::int64_t{block.x()} * kElementThreads;
  const PackMemory m(reinterpret_cast<float*>(block.shared()), kPackValues);
  block.ForThreads([&](int thread) {
    const std::int64_t i = first + thread;
    if (i >= a.width) return;
    float* up = a.up + row * a.up_stride + i;
    float result;
    if (a.interleaved) {
      const float* pair = a.gate + row * a.gate_stride + 2 * i;
      result = Activated(a.kind, pair[0], pair[1]);
    } else {
      const float gate =
          a.gate != nullptr ? a.gate[row * a.gate_stride + i] : 0.0f;
      result = Activated(a.kind, gate, *up);
    }
    if (a.codes != nullptr) {
      m.values[thread] = result;
    } else {
      *up = result;
    }
  });
  if (a.codes == nullptr) return;
  block.Sync();
  PackPiece(block, m, row, first, PieceOf(a.width, first), a.width, a.codes,
            a.scales);
}

struct AddArgs {
  const float* from;
  float* to;
  std::int64_t n;  // floats
  float scale;     // of `from`; 1: none
  int* first_bad;  // becomes `layer` when it was none and a sum is not finite
  int layer;
};
#ifdef __CUDACC__
HEARTH_GPU void NoteLayer(int* first, int layer) { atomicMin(first, layer); }
#else
HEARTH_GPU void NoteLayer(int* first, int layer) {
  if (layer < *first) *first = layer;
}
#endif

// grid: n / kElementThreads, rounded up.
HEARTH_GPU void AddTo(const Block& block, const AddArgs& a) {
  block.Await();
  block.ForThreads([&](int thread) {
    const std::int64_t i = std::int64_t{block.x()} * kElementThreads + thread;
    if (i >= a.n) return;
    const float x = a.scale != 1.0f ? a.from[i] * a.scale : a.from[i];
    const float sum = a.to[i] + x;
    a.to[i] = sum;
    if (!IsFinite(sum)) NoteLayer(a.first_bad, a.layer);
  });
}

struct LogitsArgs {
  float* logits;
  std::int64_t n;
  float scale, softcap;
  int* first_bad;
  int layer;
};
// grid: n / kElementThreads, rounded up.
HEARTH_GPU void FinishLogits(const Block& block, const LogitsArgs& a) {
  block.Await();
  block.ForThreads([&](int thread) {
    const std::int64_t i = std::int64_t{block.x()} * kElementThreads + thread;
    if (i >= a.n) return;
    float x = a.logits[i];
    if (!IsFinite(x)) NoteLayer(a.first_bad, a.layer);
    if (a.scale != 1.0f) x = x * a.scale;
    if (a.softcap > 0.0f) x = Softcap(x, a.softcap);
    a.logits[i] = x;
  });
}

// Runs of floats from place to place: out[row][run][i] = in[index ? index[row]
// : row][run][i].
struct CopyArgs {
  const float* from;
  std::int64_t from_row, from_run;
  float* to;
  std::int64_t to_row, to_run;
  std::int64_t n;    // floats of a run
  const int* index;  // or null
};
// grid: (runs, rows).
HEARTH_GPU void CopyRuns(const Block& block, const CopyArgs& a) {
  block.Await();
  const std::int64_t row =
      a.index != nullptr ? a.index[block.y()] : std::int64_t{block.y()};
  const float* from = a.from + row * a.from_row + block.x() * a.from_run;
  float* to = a.to + block.y() * a.to_row + block.x() * a.to_run;
  ForItems(block, a.n, [&](std::int64_t i) { to[i] = from[i]; });
}

}  // namespace hearth::gpu
