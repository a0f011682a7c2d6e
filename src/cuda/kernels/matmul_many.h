// y = W x of weights in blocks for many rows, as prompts have them: the dot
// products on tensor cores, which are exact in any order, then each output's
// chain over groups in the CPU's.
//
// A block of threads has 128 rows and 128 outputs; two groups of 32 inputs at a
// time lie in shared memory, while the next two are on their way. Each of eight
// warps has 64 rows and 32 outputs: sixteen products of 16 x 8.
#pragma once

#include "cuda/kernels/matmul_few.h"

namespace hearth::gpu {

inline constexpr int kManyThreads = 256;
inline constexpr int kManyRows = 128, kManyOutputs = 128;
inline constexpr int kManyGroups = 2;        // at a time
inline constexpr int kManyStride = 64 + 16;  // bytes of a row: no bank twice

// What lies in shared memory.
struct ManyShared {
  std::uint8_t* x;  // [kManyRows][kManyStride]
  std::uint8_t* w;  // [kManyOutputs][kManyStride]
  // [kManyGroups][kManyRows]: scales, and with the sums of each half's codes,
  // negated.
  float *x_scale, *x_sum[2];
  float *w_scale[2], *w_minimum[2];  // [kManyGroups][kManyOutputs]

  HEARTH_GPU explicit ManyShared(std::byte* shared) {
    x = reinterpret_cast<std::uint8_t*>(shared);
    w = x + kManyRows * kManyStride;
    float* at = reinterpret_cast<float*>(w + kManyOutputs * kManyStride);
    constexpr int kRun = kManyGroups * kManyRows;
    x_scale = at;
    for (int i = 0; i < 2; ++i) {
      x_sum[i] = at + (1 + i) * kRun;
      w_scale[i] = at + (3 + i) * kRun;
      w_minimum[i] = at + (5 + i) * kRun;
    }
  }
};
static_assert(kManyRows == kManyOutputs);
inline constexpr int kManySharedBytes =
    2 * kManyRows * kManyStride + 7 * kManyGroups * kManyRows * 4;

// What one thread fetches of the next groups: half a group's row of x and of w
// each.
struct ManyFetch {
  Words4 x[2];
  Words4 w[2];  // as they lie: nibbles fill one
  PackedScale x_scale;
  GroupScales w_scales;
  bool live_x, live_w;
};

// Thread t fetches group t % 2 of row and output t / 2.
template <class F>
HEARTH_GPU void FetchMany(const MatmulArgs& a, const Matrix& w, int first_row,
                          std::int64_t first_output, std::int64_t first_group,
                          int thread, ManyFetch& f) {
  const std::int64_t n_groups = w.n_in / 32;
  const std::int64_t g = first_group + thread % 2;
  const std::int64_t row = first_row + thread / 2;
  const std::int64_t output = first_output + thread / 2;
  f.live_x = g < n_groups && row < a.n_rows;
  f.live_w = g < n_groups && output < w.n_out;
  const Words4 zero = {{0, 0, 0, 0}};
  f.x[0] = f.x[1] = f.w[0] = f.w[1] = zero;
  f.x_scale = {0.0f, {0, 0}};
  f.w_scales = {};
  if (f.live_x) {
    const std::uint8_t* in = a.x.codes + row * w.n_in + g * 32;
    f.x[0] = LoadWords4(in);
    f.x[1] = LoadWords4(in + 16);
    f.x_scale = a.x.scales[row * n_groups + g];
  }
  if (f.live_w) {
    const std::int64_t group = output * n_groups + g;
    if (F::kCodesKind == Codes::kNibbles) {
      f.w[0] = LoadWords4(w.codes + group * 16);
    } else {
      f.w[0] = LoadWords4(w.codes + group * 32);
      f.w[1] = LoadWords4(w.codes + group * 32 + 16);
    }
    f.w_scales = ScalesOf<F::kHasHalves, F::kHasMinimums>(w, group);
  }
}

#ifdef __CUDACC__
HEARTH_GPU void StoreWords4(std::uint8_t* p, const Words4& v) {
  *reinterpret_cast<uint4*>(p) = make_uint4(v.w[0], v.w[1], v.w[2], v.w[3]);
}
#else
HEARTH_GPU void StoreWords4(std::uint8_t* p, const Words4& v) {
  *reinterpret_cast<Words4*>(p) = v;
}
#endif

template <class F>
HEARTH_GPU void KeepMany(const Matrix& w, int thread, const ManyFetch& f,
                         const ManyShared& m) {
  const int row = thread / 2, g = thread % 2;
  const int at = row * kManyStride + g * 32;
  StoreWords4(m.x + at, f.x[0]);
  StoreWords4(m.x + at + 16, f.x[1]);
  Words4 low = f.w[0], high = f.w[1];
  if (F::kCodesKind == Codes::kNibbles) {
    // Less the bias, byte by byte and without a borrow.
    const std::uint32_t add =
        (0x80u - static_cast<std::uint32_t>(w.bias)) * 0x01010101u;
    HEARTH_GPU_UNROLL
    for (int i = 0; i < 4; ++i) {
      const std::uint32_t both = f.w[0].w[i];
      low.w[i] = ((both & 0x0f0f0f0fu) + add) ^ 0x80808080u;
      high.w[i] = (((both >> 4) & 0x0f0f0f0fu) + add) ^ 0x80808080u;
    }
  }
  StoreWords4(m.w + at, low);
  StoreWords4(m.w + at + 16, high);
  const int i = g * kManyRows + row;
  m.x_scale[i] = f.x_scale.scale;
  m.w_scale[0][i] = f.w_scales.scale[0];
  if (F::kHasHalves) m.w_scale[1][i] = f.w_scales.scale[1];
  if (!F::kHasMinimums) return;
  const int sums[2] = {f.x_scale.sums[0], f.x_scale.sums[1]};
  if (F::kHasHalves) {
    HEARTH_GPU_UNROLL
    for (int k = 0; k < 2; ++k) {
      m.x_sum[k][i] = -(f.x_scale.scale * static_cast<float>(sums[k]));
      m.w_minimum[k][i] = f.w_scales.minimum[k];
    }
  } else {
    m.x_sum[0][i] = -(f.x_scale.scale * static_cast<float>(sums[0] + sums[1]));
    m.w_minimum[0][i] = f.w_scales.minimum[0];
  }
}

// Sums of a thread: 4 x 4 products of 16 x 8, four numbers of each.
struct ManySums {
  float acc[4][4][4];
};
// Fragments of a lane for one group of 32 inputs.
struct ManyFragments {
  std::uint32_t a[4][4];  // [rows of 16][half * 2 + rows of 8]
  std::uint32_t b[2];     // [half]
};
struct ManyDots {
  int d[2][4];  // of the two halves; without halves the first alone
};

// A dot product's float, from a sum that began at this number's bits.
inline constexpr int kMagicBits = 0x4b400000;
HEARTH_GPU float FloatOfDot(int bits) {
  return AsFloat(static_cast<std::uint32_t>(bits)) - 12582912.0f;
}

// One product of 16 x 8 joins the sums; `row` and `output` are its first ones
// in the tile.
template <class F>
HEARTH_GPU void AddDots(const ManyShared& m, int g, int row, int output,
                        const int (&d)[2][4], float (&acc)[4]) {
  HEARTH_GPU_UNROLL
  for (int i = 0; i < 4; ++i) {
    const int r = g * kManyRows + row + i / 2 * 8;
    const int o = g * kManyOutputs + output + i % 2;
    if (F::kHasHalves) {
      const float first = FloatOfDot(d[0][i]) * m.w_scale[0][o];
      const float both = Fma(FloatOfDot(d[1][i]), m.w_scale[1][o], first);
      acc[i] = Fma(m.x_scale[r], both, acc[i]);
      if (F::kHasMinimums) {
        acc[i] = Fma(m.x_sum[0][r], m.w_minimum[0][o], acc[i]);
        acc[i] = Fma(m.x_sum[1][r], m.w_minimum[1][o], acc[i]);
      }
    } else {
      acc[i] = Fma(FloatOfDot(d[0][i]), m.x_scale[r] * m.w_scale[0][o], acc[i]);
      if (F::kHasMinimums) {
        acc[i] = Fma(m.x_sum[0][r], m.w_minimum[0][o], acc[i]);
      }
    }
  }
}

template <class F>
HEARTH_GPU void MultiplyGroup(const Warp& warp, const ManyShared& m, int g,
                              PerThread<ManySums>& sums) {
  const int warp_row = warp.index() / 4 * 64;
  const int warp_output = warp.index() % 4 * 32;
  PerLane<ManyFragments> fragments;
  PerLane<ManyDots> dots;
  const auto word = [&](const std::uint8_t* tile, int row, int half, int lane) {
    return *reinterpret_cast<const std::uint32_t*>(
        tile + (row + lane / 4) * kManyStride + g * 32 + half * 16 +
        lane % 4 * 4);
  };
  warp.ForLanes([&](int lane) {
    ManyFragments& f = fragments(lane);
    HEARTH_GPU_UNROLL
    for (int i = 0; i < 4; ++i) {
      HEARTH_GPU_UNROLL
      for (int k = 0; k < 4; ++k) {
        f.a[i][k] = word(m.x, warp_row + i * 16 + k % 2 * 8, k / 2, lane);
      }
    }
  });
  HEARTH_GPU_UNROLL
  for (int j = 0; j < 4; ++j) {
    warp.ForLanes([&](int lane) {
      fragments(lane).b[0] = word(m.w, warp_output + j * 8, 0, lane);
      fragments(lane).b[1] = word(m.w, warp_output + j * 8, 1, lane);
    });
    HEARTH_GPU_UNROLL
    for (int i = 0; i < 4; ++i) {
      warp.ForLanes([&](int lane) {
        HEARTH_GPU_UNROLL
        for (int k = 0; k < 4; ++k) {
          dots(lane).d[0][k] = dots(lane).d[1][k] = kMagicBits;
        }
      });
      HEARTH_GPU_UNROLL
      for (int half = 0; half < 2; ++half) {
        warp.Mma16(
            [&](int lane, int k) { return fragments(lane).a[i][half * 2 + k]; },
            [&](int lane) { return fragments(lane).b[half]; },
            [&](int lane) { return dots(lane).d[F::kHasHalves ? half : 0]; });
      }
      warp.ForLanes([&](int lane) {
        AddDots<F>(m, g, warp_row + i * 16 + lane / 4,
                   warp_output + j * 8 + lane % 4 * 2, dots(lane).d,
                   sums(warp.index() * kWarp + lane).acc[i][j]);
      });
    }
  }
}

template <class F>
HEARTH_GPU void ManyTile(const Block& block, const MatmulArgs& a,
                         const MatmulCall& call, std::int64_t first_output,
                         int first_row) {
  const Matrix& w = call.w;
  const std::int64_t n_groups = w.n_in / 32;
  const ManyShared m(block.shared());
  PerThread<ManySums> sums(block);
  PerThread<ManyFetch> fetched(block);
  block.ForThreads([&](int thread) {
    sums(thread) = {};
    FetchMany<F>(a, w, first_row, first_output, 0, thread, fetched(thread));
  });
  for (std::int64_t g = 0; g < n_groups; g += kManyGroups) {
    block.Sync();
    block.ForThreads(
        [&](int thread) { KeepMany<F>(w, thread, fetched(thread), m); });
    block.Sync();
    if (g + kManyGroups < n_groups) {
      block.ForThreads([&](int thread) {
        FetchMany<F>(a, w, first_row, first_output, g + kManyGroups, thread,
                     fetched(thread));
      });
    }
    ForWarps(block, [&](const Warp& warp) {
      MultiplyGroup<F>(warp, m, 0, sums);
      if (g + 1 < n_groups) MultiplyGroup<F>(warp, m, 1, sums);
    });
  }
  block.ForThreads([&](int thread) {
    const int lane = thread % kWarp, warp = thread / kWarp;
    HEARTH_GPU_UNROLL
    for (int i = 0; i < 64; ++i) {
      const std::int64_t row =
          first_row + warp / 4 * 64 + i / 16 * 16 + i / 2 % 2 * 8 + lane / 4;
      const std::int64_t output =
          first_output + warp % 4 * 32 + i / 4 % 4 * 8 + lane % 4 * 2 + i % 2;
      if (row >= a.n_rows || output >= w.n_out) continue;
      const float acc = sums(thread).acc[i / 16][i / 4 % 4][i % 4];
      call.y[row * call.y_stride + output] =
          call.bias != nullptr ? acc + call.bias[output] : acc;
    }
  });
}

// grid: (rows / kManyRows, outputs of all calls / kManyOutputs), each call
// rounded up. shared: kManySharedBytes.
HEARTH_GPU void MatmulMany(const Block& block, const MatmulArgs& a) {
  block.Await();
  const int index = CallOf(a, block.y());
  const MatmulCall& call = a.calls[index];
  const std::int64_t first_output =
      std::int64_t{block.y() - a.first_block[index]} * kManyOutputs;
  const int first_row = static_cast<int>(block.x()) * kManyRows;
  WithForm(call.w, [&](auto form) {
    ManyTile<decltype(form)>(block, a, call, first_output, first_row);
  });
}

}  // namespace hearth::gpu
