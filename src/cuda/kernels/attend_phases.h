// The phases of attention over one segment (attend.h).
#pragma once

#include "cuda/kernels/attend.h"

namespace hearth::gpu {

// The tiles of a segment, and the passes over them.
struct SegmentView {
  int first_tile, n_tiles;
  int per_tile;  // passes: 2 where the layer has sink tokens
  HEARTH_GPU int passes() const { return n_tiles * per_tile; }
  HEARTH_GPU int TileOfPass(int pass) const {
    return first_tile + pass / per_tile;
  }
  HEARTH_GPU bool SinksOfPass(int pass) const {
    return per_tile == 2 && pass % 2 == 0;
  }
};

HEARTH_GPU int PositionOf(const AttendArgs& a, const TaskView& task, int row) {
  return task.first_position + row / a.group;
}

// Whether any row of the task looks at the tile: others may be gone.
HEARTH_GPU bool IsSeen(const AttendArgs& a, const TaskView& task, int tile) {
  const int base = tile * a.step.block_tokens;
  return base < a.sink_tokens ||
         tile >=
             WindowStart(task.first_position, a.window) / a.step.block_tokens;
}

// The sum of a row's q times the keys' zeros: sixteen lanes, the tree.
template <int kRows>
HEARTH_GPU float FoldQuery(const AttendArgs& a, const TileView& view,
                           const float* queries, int row) {
  float lanes[16];
  HEARTH_GPU_UNROLL
  for (int l = 0; l < 16; ++l) lanes[l] = 0.0f;
  for (int d = 0; d < a.head_dim; d += 16) {
    HEARTH_GPU_UNROLL
    for (int l = 0; l < 16; ++l) {
      const bool live = d + l < a.head_dim;
      const float q = live ? queries[(d + l) * kRows + row] : 0.0f;
      const float zero =
          live ? Param(view.key_params, a.head_dim + d + l) : 0.0f;
      lanes[l] = Fma(q, zero, lanes[l]);
    }
  }
  return ReduceLanes(lanes);
}

// start[tile][row]: of every tile, for tokens that are no sinks.
template <int kRows>
HEARTH_GPU void FoldQueries(const Block& block, const AttendArgs& a,
                            const TaskView& task, const SegmentView& segment,
                            const AttendMemory<kRows>& m) {
  ForItems(block, segment.n_tiles * kRows, [&](std::int64_t i) {
    const int row = static_cast<int>(i) % kRows;
    const int tile = segment.first_tile + static_cast<int>(i) / kRows;
    m.start[i] = 0.0f;
    if (row >= task.n_rows || !IsSeen(a, task, tile)) return;
    const TileView& view = m.views[i / kRows];
    if (!IsQuantised(view.key_format)) return;
    m.start[i] = FoldQuery<kRows>(a, view, m.q, row);
  });
}

// kN neighbouring floats of shared memory, aligned to all of them or to four.
template <int kN>
HEARTH_GPU void LoadFloats(const float* p, float (&out)[kN]) {
  if constexpr (kN % 4 == 0) {
    HEARTH_GPU_UNROLL
    for (int i = 0; i < kN; i += 4) {
      const Words4 v = LoadWords4(reinterpret_cast<const std::uint8_t*>(p + i));
      HEARTH_GPU_UNROLL
      for (int k = 0; k < 4; ++k) out[i + k] = AsFloat(v.w[k]);
    }
  } else {
    HEARTH_GPU_UNROLL
    for (int i = 0; i < kN; ++i) out[i] = p[i];
  }
}

// The scores of one token with all rows.
template <Kv kFormat, int kRows>
HEARTH_GPU void ScoreToken(const AttendArgs& a, const TileView& view,
                           const float* q, int slot, float (&score)[kRows]) {
  const std::int64_t step = RowBytes(kFormat, a.step.block_tokens);
  constexpr bool kQuantised = IsQuantised(kFormat);
  constexpr int kAtOnce = kQuantised ? 16 : 32;  // on their way from memory
  for (int first = 0; first < a.head_dim; first += kAtOnce) {
    float key[kAtOnce], scale[kQuantised ? kAtOnce : 1];
    HEARTH_GPU_UNROLL
    for (int i = 0; i < kAtOnce; ++i) {
      // The last ones again where there are no more.
      const int d = Least(first + i, a.head_dim - 1);
      key[i] = KvNumber(kFormat, view.keys + d * step, slot);
      if constexpr (kQuantised) scale[i] = Param(view.key_params, d);
    }
    HEARTH_GPU_UNROLL
    for (int i = 0; i < kAtOnce; ++i) {
      const int d = first + i;
      if (d >= a.head_dim) break;
      float factor[kRows];
      LoadFloats<kRows>(q + d * kRows, factor);
      HEARTH_GPU_UNROLL
      for (int r = 0; r < kRows; ++r) {
        if constexpr (kQuantised) factor[r] = factor[r] * scale[i];
        score[r] = Fma(factor[r], key[i], score[r]);
      }
    }
  }
}

template <Kv format>
struct KvTag {
  static constexpr Kv kFormat = format;
};
// body(KvTag<format>()).
template <class Body>
HEARTH_GPU void WithKvFormat(Kv format, const Body& body) {
  switch (format) {
    case Kv::kF32:
      body(KvTag<Kv::kF32>());
      break;
    case Kv::kF16:
      body(KvTag<Kv::kF16>());
      break;
    case Kv::kBF16:
      body(KvTag<Kv::kBF16>());
      break;
    case Kv::kInt8:
      body(KvTag<Kv::kInt8>());
      break;
    case Kv::kInt4:
      body(KvTag<Kv::kInt4>());
      break;
  }
}

template <int kRows>
HEARTH_GPU void Score(const Block& block, const AttendArgs& a,
                      const TaskView& task, const SegmentView& segment,
                      const AttendMemory<kRows>& m) {
  const int n = a.step.block_tokens;
  ForItems(block, segment.n_tiles * n, [&](std::int64_t i) {
    const int at = static_cast<int>(i);
    const int tile = segment.first_tile + at / n, slot = at % n;
    const int position = tile * n + slot;
    float score[kRows];
    HEARTH_GPU_UNROLL
    for (int r = 0; r < kRows; ++r) score[r] = -Infinity();
    const bool sink = position < a.sink_tokens;
    if (IsSeen(a, task, tile) && position <= task.last_position) {
      const TileView view = m.views[at / n];
      HEARTH_GPU_UNROLL
      for (int r = 0; r < kRows; ++r) {
        score[r] = m.start[at / n * kRows + r];
        if (sink && IsQuantised(view.key_format) && r < task.n_rows) {
          score[r] = FoldQuery<kRows>(a, view, m.q_sink, r);
        }
      }
      const float* q = sink ? m.q_sink : m.q;
      WithKvFormat(view.key_format, [&](auto tag) {
        ScoreToken<decltype(tag)::kFormat>(a, view, q, slot, score);
      });
      HEARTH_GPU_UNROLL
      for (int r = 0; r < kRows; ++r) {
        if (a.softcap > 0.0f) score[r] = Softcap(score[r], a.softcap);
        const int row_position = PositionOf(a, task, r);
        const Sight sight = SightOf(a, row_position, tile, sink);
        if (r >= task.n_rows || position < sight.begin ||
            position >= sight.end) {
          score[r] = -Infinity();
        }
      }
    }
    HEARTH_GPU_UNROLL
    for (int r = 0; r < kRows; ++r) m.p[at * kRows + r] = score[r];
  });
}

// Whether a row meets a token in a pass.
template <int kRows>
HEARTH_GPU bool Meets(const AttendArgs& a, const TaskView& task,
                      const SegmentView& segment, int pass, int row,
                      Sight* sight) {
  if (row >= task.n_rows) return false;
  const int tile = segment.TileOfPass(pass);
  if (!IsSeen(a, task, tile)) return false;
  *sight =
      SightOf(a, PositionOf(a, task, row), tile, segment.SinksOfPass(pass));
  return sight->begin < sight->end;
}

// Of each pass the largest score; then, pass after pass, the running maximum
// and the factor for what was summed before.
template <int kRows>
HEARTH_GPU void Maxima(const Block& block, const AttendArgs& a,
                       const TaskView& task, const SegmentView& segment,
                       const AttendMemory<kRows>& m) {
  const int origin = segment.first_tile * a.step.block_tokens;
  ForItems(block, segment.passes() * kRows, [&](std::int64_t i) {
    const int row = static_cast<int>(i) % kRows;
    const int pass = static_cast<int>(i) / kRows;
    float largest = -Infinity();
    Sight sight;
    if (Meets<kRows>(a, task, segment, pass, row, &sight)) {
      for (int t = sight.begin - origin; t < sight.end - origin; ++t) {
        largest = Max(largest, m.p[t * kRows + row]);
      }
    }
    m.maximum[i] = largest;
  });
  block.Sync();
  block.ForThreads([&](int row) {
    if (row >= kRows) return;
    float max = -Infinity();
    for (int pass = 0; pass < segment.passes(); ++pass) {
      const int i = pass * kRows + row;
      float difference = 0.0f;
      if (m.maximum[i] > max) {
        difference = max - m.maximum[i];
        max = m.maximum[i];
      }
      m.scale[i] = ExpNegative(difference);
      // Against 0 every weight of a row without a maximum is exactly 0.
      m.maximum[i] = max == -Infinity() ? 0.0f : max;
    }
    // The segment's maximum, until it is merged.
    m.scale_a[row] = max;
  });
}

// Scores become weights.
template <int kRows>
HEARTH_GPU void Weigh(const Block& block, const AttendArgs& a,
                      const SegmentView& segment,
                      const AttendMemory<kRows>& m) {
  const int n = a.step.block_tokens;
  ForItems(block, segment.n_tiles * n * kRows, [&](std::int64_t i) {
    const int token = static_cast<int>(i) / kRows;
    const int row = static_cast<int>(i) % kRows;
    const int position = segment.first_tile * n + token;
    int pass = token / n * segment.per_tile;
    if (segment.per_tile == 2 && position >= a.sink_tokens) ++pass;
    m.p[i] = ExpNegative(m.p[i] - m.maximum[pass * kRows + row]);
  });
}

// Of each pass the sum of the weights in sixteen lanes by slot, and what the
// values' zeros add; then weights take the values' scales.
template <int kRows>
HEARTH_GPU void SumWeights(const Block& block, const AttendArgs& a,
                           const TaskView& task, const SegmentView& segment,
                           const AttendMemory<kRows>& m) {
  const int n = a.step.block_tokens;
  const int origin = segment.first_tile * n;
  ForItems(block, segment.passes() * kRows, [&](std::int64_t i) {
    const int row = static_cast<int>(i) % kRows;
    const int pass = static_cast<int>(i) / kRows;
    m.total[i] = 0.0f;
    m.offset[i] = 0.0f;
    Sight sight;
    if (!Meets<kRows>(a, task, segment, pass, row, &sight)) return;
    const TileView& view = m.views[pass / segment.per_tile];
    const bool folds = IsQuantised(view.value_format);
    const int tile_begin = pass / segment.per_tile * n;
    float sums[16], zeros[16];
    HEARTH_GPU_UNROLL
    for (int l = 0; l < 16; ++l) sums[l] = zeros[l] = 0.0f;
    const int first = (sight.begin - origin - tile_begin) / 16 * 16;
    const int last = sight.end - origin - tile_begin;
    for (int slot = first; slot < last; slot += 16) {
      HEARTH_GPU_UNROLL
      for (int l = 0; l < 16; ++l) {
        const int token = tile_begin + slot + l;
        const bool live =
            token >= sight.begin - origin && token < sight.end - origin;
        const float weight = live ? m.p[token * kRows + row] : 0.0f;
        sums[l] = sums[l] + weight;
        if (folds) {
          const float zero =
              weight == 0.0f ? 0.0f : Param(view.value_params, n + slot + l);
          zeros[l] = Fma(weight, zero, zeros[l]);
        }
      }
    }
    m.total[i] = ReduceLanes(sums);
    if (folds) m.offset[i] = ReduceLanes(zeros);
  });
  block.Sync();
  ForItems(block, segment.n_tiles * n * kRows, [&](std::int64_t i) {
    const int token = static_cast<int>(i) / kRows;
    const int tile = segment.first_tile + token / n;
    // Scales of slots without a weight may be anything.
    if (m.p[i] == 0.0f || !IsSeen(a, task, tile)) return;
    const TileView& view = m.views[token / n];
    if (!IsQuantised(view.value_format)) return;
    m.p[i] = m.p[i] * Param(view.value_params, token % n);
  });
}

// The segment's sum, and how its state goes into that of those before it.
template <int kRows>
HEARTH_GPU void PrepareMerge(const Block& block, const TaskView& task,
                             const SegmentView& segment,
                             const AttendMemory<kRows>& m) {
  block.ForThreads([&](int row) {
    if (row >= kRows) return;
    float sum = 0.0f;
    for (int pass = 0; pass < segment.passes(); ++pass) {
      sum = Fma(sum, m.scale[pass * kRows + row], m.total[pass * kRows + row]);
    }
    const float max = m.scale_a[row];
    m.mode[row] = kSkip;
    if (row >= task.n_rows || sum == 0.0f) return;
    if (m.sum[row] == 0.0f) {
      m.mode[row] = kTake;
      m.max[row] = max;
      m.sum[row] = sum;
      return;
    }
    if (max == -Infinity()) return;
    const float both = max > m.max[row] ? max : m.max[row];
    const float scale_a = ExpNegative(m.max[row] - both);
    const float scale_b = ExpNegative(max - both);
    m.mode[row] = kBlend;
    m.scale_a[row] = scale_a;
    m.scale_b[row] = scale_b;
    m.max[row] = both;
    m.sum[row] = Fma(m.sum[row], scale_a, sum * scale_b);
  });
}

}  // namespace hearth::gpu
