// Attention's weighted sums of values over one segment (attend.h). The
// segment's tiles of values are sent for, a few at a time, before its scores
// are made.
#pragma once

#include "cuda/kernels/attend_phases.h"

namespace hearth::gpu {

// --- Tiles on their way ------------------------------------------------------

// Whether a tile can be copied sixteen bytes at a time.
HEARTH_GPU bool IsStaged(const AttendArgs& a, const TileView& view) {
  const std::int64_t bytes =
      a.step.block_tokens * RowBytes(view.value_format, a.head_dim);
  return a.ring_tiles > 0 && view.values != nullptr && bytes % 16 == 0 &&
         bytes <= a.ring_bytes &&
         reinterpret_cast<std::uint64_t>(view.values) % 16 == 0;
}

// One batch: a tile of the segment, where there is one more.
template <int kRows>
HEARTH_GPU void StageTile(const Block& block, const AttendArgs& a,
                          const SegmentView& segment, int tile,
                          const AttendMemory<kRows>& m) {
  block.ForThreads([&](int thread) {
    if (tile < segment.n_tiles && IsStaged(a, m.views[tile])) {
      const TileView& view = m.views[tile];
      const int bytes = static_cast<int>(
          a.step.block_tokens * RowBytes(view.value_format, a.head_dim));
      std::uint8_t* to = m.ring + tile % a.ring_tiles * a.ring_bytes;
      for (int at = thread * 16; at < bytes; at += kAttendThreads * 16) {
        BeginCopy16(to + at, view.values + at);
      }
    }
    EndBatch();
  });
}
template <int kRows>
HEARTH_GPU void StageTiles(const Block& block, const AttendArgs& a,
                           const SegmentView& segment,
                           const AttendMemory<kRows>& m) {
  for (int i = 0; i < a.ring_tiles; ++i) StageTile(block, a, segment, i, m);
}
// The oldest batch has arrived.
HEARTH_GPU void AwaitTile(const Block& block, const AttendArgs& a) {
  block.ForThreads([&](int) {
    switch (a.ring_tiles) {
      case 4:
        AwaitBatches<3>();
        break;
      case 3:
        AwaitBatches<2>();
        break;
      case 2:
        AwaitBatches<1>();
        break;
      default:
        AwaitBatches<0>();
        break;
    }
  });
  block.Sync();
}

// --- Sums --------------------------------------------------------------------

// What kShare rows from `row` on see of a tile in a pass.
template <int kShare>
struct ShareSight {
  bool meets[kShare];
  Sight sight[kShare];
  int begin, end;  // of all of them
  bool same;       // all rows that there are see the same tokens

  template <int kRows>
  HEARTH_GPU void Look(const AttendArgs& a, const TaskView& task,
                       const SegmentView& segment, int pass, int row) {
    begin = (segment.first_tile + segment.n_tiles) * a.step.block_tokens;
    end = 0;
    same = true;
    HEARTH_GPU_UNROLL
    for (int r = 0; r < kShare; ++r) {
      sight[r] = {0, 0};
      meets[r] = Meets<kRows>(a, task, segment, pass, row + r, &sight[r]);
      if (meets[r]) {
        begin = Least(begin, sight[r].begin);
        end = Most(end, sight[r].end);
      }
      // Sums of rows that are not there are never read.
      if (row + r >= task.n_rows) continue;
      same = same && meets[r] && sight[r].begin == sight[0].begin &&
             sight[r].end == sight[0].end;
    }
  }
};

// Tokens [begin, end) of one tile, of one dimension. `rows`: the tile's values.
template <Kv kFormat, int kRows, int kShare>
HEARTH_GPU void AddTokens(const AttendArgs& a, const ShareSight<kShare>& s,
                          const std::uint8_t* rows, int first_token, int d,
                          const float* p, float (&acc)[kShare]) {
  const std::int64_t step = RowBytes(kFormat, a.head_dim);
  constexpr int kAtOnce = 16;  // on their way from memory
  int first = s.begin;
  for (; s.same && first + kAtOnce <= s.end; first += kAtOnce) {
    float value[kAtOnce];
    HEARTH_GPU_UNROLL
    for (int i = 0; i < kAtOnce; ++i) {
      value[i] = KvNumber(kFormat, rows + (first + i - first_token) * step, d);
    }
    HEARTH_GPU_UNROLL
    for (int i = 0; i < kAtOnce; ++i) {
      float weight[kShare];
      LoadFloats<kShare>(p + (first + i - first_token) * kRows, weight);
      HEARTH_GPU_UNROLL
      for (int r = 0; r < kShare; ++r) {
        acc[r] = Fma(weight[r], value[i], acc[r]);
      }
    }
  }
  for (int t = first; t < s.end; ++t) {
    const float value = KvNumber(kFormat, rows + (t - first_token) * step, d);
    HEARTH_GPU_UNROLL
    for (int r = 0; r < kShare; ++r) {
      if (t >= s.sight[r].begin && t < s.sight[r].end) {
        acc[r] = Fma(p[(t - first_token) * kRows + r], value, acc[r]);
      }
    }
  }
}

// One tile of one dimension for kShare rows from `row` on: its passes.
template <int kRows, int kShare>
HEARTH_GPU void AddTile(const AttendArgs& a, const TaskView& task,
                        const SegmentView& segment,
                        const AttendMemory<kRows>& m, int tile, int d, int row,
                        float (&acc)[kShare]) {
  const int n = a.step.block_tokens;
  const TileView view = m.views[tile];
  const std::uint8_t* rows = IsStaged(a, view)
                                 ? m.ring + tile % a.ring_tiles * a.ring_bytes
                                 : view.values;
  for (int k = 0; k < segment.per_tile; ++k) {
    const int pass = tile * segment.per_tile + k;
    ShareSight<kShare> s;
    s.template Look<kRows>(a, task, segment, pass, row);
    HEARTH_GPU_UNROLL
    for (int r = 0; r < kShare; ++r) {
      if (s.meets[r]) acc[r] = acc[r] * m.scale[pass * kRows + row + r];
    }
    if (s.begin >= s.end) continue;
    WithKvFormat(view.value_format, [&](auto tag) {
      AddTokens<decltype(tag)::kFormat, kRows, kShare>(
          a, s, rows, (segment.first_tile + tile) * n, d,
          m.p + tile * n * kRows + row, acc);
    });
    if (!IsQuantised(view.value_format)) continue;
    HEARTH_GPU_UNROLL
    for (int r = 0; r < kShare; ++r) {
      if (s.meets[r]) acc[r] = acc[r] + m.offset[pass * kRows + row + r];
    }
  }
}

template <int kShare>
struct ShareSums {
  float acc[kShare];
};

// All tiles of the segment, and what they come to joins m.acc. REQUIRES:
// StageTiles was called.
template <int kRows>
HEARTH_GPU void SumValues(const Block& block, const AttendArgs& a,
                          const TaskView& task, const SegmentView& segment,
                          const AttendMemory<kRows>& m) {
  constexpr int kShare = kRows < 4 ? kRows : 4;
  const int n_items = a.head_dim * (kRows / kShare);
  PerThread<ShareSums<kShare>> sums(block);
  for (int first = 0; first < n_items; first += kAttendThreads) {
    if (first > 0) StageTiles(block, a, segment, m);
    const auto with_item = [&](int thread, const auto& body) {
      const int item = first + thread;
      const int d = item % a.head_dim;
      const int row = item / a.head_dim * kShare;
      if (item < n_items && row < task.n_rows) body(d, row);
    };
    block.ForThreads([&](int thread) {
      HEARTH_GPU_UNROLL
      for (int r = 0; r < kShare; ++r) sums(thread).acc[r] = 0.0f;
    });
    for (int tile = 0; tile < segment.n_tiles; ++tile) {
      if (a.ring_tiles > 0) AwaitTile(block, a);
      block.ForThreads([&](int thread) {
        with_item(thread, [&](int d, int row) {
          AddTile<kRows, kShare>(a, task, segment, m, tile, d, row,
                                 sums(thread).acc);
        });
      });
      if (a.ring_tiles == 0) continue;
      block.Sync();
      StageTile(block, a, segment, tile + a.ring_tiles, m);
    }
    block.ForThreads([&](int thread) {
      with_item(thread, [&](int d, int row) {
        HEARTH_GPU_UNROLL
        for (int r = 0; r < kShare; ++r) {
          const float acc = sums(thread).acc[r];
          float& into = m.acc[d * kRows + row + r];
          if (m.mode[row + r] == kTake) into = acc;
          if (m.mode[row + r] == kBlend) {
            into = Fma(into, m.scale_a[row + r], acc * m.scale_b[row + r]);
          }
        }
      });
    });
  }
}

}  // namespace hearth::gpu
