// Attention of a step's rows (attend.h): whole, or by segments that are merged
// behind it.
#pragma once

#include "cuda/kernels/attend_values.h"

namespace hearth::gpu {

template <int kRows>
HEARTH_GPU void LoadQueries(const Block& block, const AttendArgs& a,
                            const TaskView& task,
                            const AttendMemory<kRows>& m) {
  ForItems(block, a.head_dim * kRows, [&](std::int64_t i) {
    const int row = static_cast<int>(i) % kRows;
    const int d = static_cast<int>(i) / kRows;
    const std::int64_t at = task.row0 + row / a.group;
    const int head = task.first_head + row % a.group;
    const bool live = row < task.n_rows;
    const std::int64_t column = std::int64_t{head} * a.head_dim + d;
    m.q[i] = live ? a.q[at * a.q_stride + column] * a.scale : 0.0f;
    if (a.sink_tokens > 0) {
      m.q_sink[i] =
          live ? a.q_sink[at * a.sink_stride + column] * a.scale : 0.0f;
    }
    m.acc[i] = 0.0f;
  });
  block.ForThreads([&](int row) {
    if (row >= kRows) return;
    m.max[row] = -Infinity();
    m.sum[row] = 0.0f;
  });
  block.Sync();
}

template <int kRows>
HEARTH_GPU void AttendSegment(const Block& block, const AttendArgs& a,
                              const TaskView& task, int index,
                              const AttendMemory<kRows>& m) {
  const int per_segment = a.segment_tokens / a.step.block_tokens;
  const int first = index * per_segment;
  const int last = task.last_position / a.step.block_tokens;
  const SegmentView segment{first, Least(per_segment, last + 1 - first),
                            a.sink_tokens > 0 ? 2 : 1};
  ForItems(block, segment.n_tiles, [&](std::int64_t i) {
    const int tile = segment.first_tile + static_cast<int>(i);
    m.views[i] = IsSeen(a, task, tile) ? TileOf(a, task, tile) : TileView{};
  });
  block.Sync();
  StageTiles(block, a, segment, m);
  FoldQueries(block, a, task, segment, m);
  block.Sync();
  Score(block, a, task, segment, m);
  block.Sync();
  Maxima(block, a, task, segment, m);
  block.Sync();
  Weigh(block, a, segment, m);
  block.Sync();
  SumWeights(block, a, task, segment, m);
  block.Sync();
  PrepareMerge(block, task, segment, m);
  block.Sync();
  SumValues(block, a, task, segment, m);
  block.Sync();
}

// How a row's learned sink, a token of weight one and value zero, is merged.
struct SinkFactors {
  float scale_acc, scale_zero, sum;
  bool merges;
};
HEARTH_GPU SinkFactors FactorsOf(const float* sinks, int head, float max,
                                 float sum) {
  if (sinks == nullptr || sinks[head] == -Infinity()) {
    return {1.0f, 0.0f, sum, false};
  }
  const float both = sinks[head] > max ? sinks[head] : max;
  const float scale_acc = ExpNegative(max - both);
  const float scale_zero = ExpNegative(sinks[head] - both);
  return {scale_acc, scale_zero, Fma(sum, scale_acc, 1.0f * scale_zero), true};
}
HEARTH_GPU float Finished(const SinkFactors& f, float acc) {
  if (f.merges) acc = Fma(acc, f.scale_acc, 0.0f * f.scale_zero);
  return Div(acc, f.sum == 0.0f ? 1.0f : f.sum);
}

template <int kRows>
HEARTH_GPU void Finish(const Block& block, const AttendArgs& a,
                       const TaskView& task, const AttendMemory<kRows>& m) {
  ForItems(block, a.head_dim * task.n_rows, [&](std::int64_t i) {
    const int d = static_cast<int>(i) % a.head_dim;
    const int row = static_cast<int>(i) / a.head_dim;
    const int head = task.first_head + row % a.group;
    const SinkFactors f = FactorsOf(a.sinks, head, m.max[row], m.sum[row]);
    const std::int64_t at = task.row0 + row / a.group;
    a.out[(at * a.n_heads + head) * a.head_dim + d] =
        Finished(f, m.acc[d * kRows + row]);
  });
}

HEARTH_GPU TaskView ViewOf(const AttendArgs& a, const Block& block) {
  const RowTask& task = a.tasks[block.x()];
  const StepPart& part = a.step.parts[task.part];
  return {&part,
          task.begin,
          (task.end - task.begin) * a.group,
          part.first_position + task.begin,
          part.first_position + task.end - 1,
          static_cast<int>(block.y()) / a.shares,
          static_cast<int>(block.y()) * a.group,
          part.first_row + task.begin};
}

HEARTH_GPU float* StateOf(const AttendArgs& a, int rows, std::int64_t task,
                          std::int64_t share, std::int64_t segment) {
  const std::int64_t n_shares = a.n_heads / a.group;
  return a.states + ((task * n_shares + share) * a.n_segments + segment) *
                        rows * (a.head_dim + 2);
}

// grid: (tasks, shares of all KV heads, 1), or n_segments in z where there are
// states.
template <int kRows>
HEARTH_GPU void Attend(const Block& block, const AttendArgs& a) {
  block.Await();
  const TaskView task = ViewOf(a, block);
  const int tiles = a.segment_tokens / a.step.block_tokens;
  const AttendMemory<kRows> m(block.shared(), a.head_dim, a.segment_tokens,
                              tiles, tiles * (a.sink_tokens > 0 ? 2 : 1));
  const Segments segments = SegmentsOf(a, *task.part, a.tasks[block.x()]);
  if (a.states == nullptr) {
    LoadQueries(block, a, task, m);
    for (int i = 0; i < segments.count(); ++i) {
      AttendSegment(block, a, task, segments.At(i), m);
    }
    Finish(block, a, task, m);
    return;
  }
  if (static_cast<int>(block.z()) >= segments.count()) return;
  LoadQueries(block, a, task, m);
  AttendSegment(block, a, task, segments.At(static_cast<int>(block.z())), m);
  float* state = StateOf(a, kRows, block.x(), block.y(), block.z());
  ForItems(block, (a.head_dim + 2) * kRows, [&](std::int64_t i) {
    const int row = static_cast<int>(i) % kRows;
    const int d = static_cast<int>(i) / kRows;
    state[i] = d < a.head_dim    ? m.acc[i]
               : d == a.head_dim ? m.max[row]
                                 : m.sum[row];
  });
}

// Merges the states of all segments and finishes. grid: (tasks, shares of all
// KV heads).
template <int kRows>
HEARTH_GPU void MergeSegments(const Block& block, const AttendArgs& a) {
  block.Await();
  const TaskView task = ViewOf(a, block);
  const int count = SegmentsOf(a, *task.part, a.tasks[block.x()]).count();
  ForItems(block, a.head_dim * task.n_rows, [&](std::int64_t i) {
    const int d = static_cast<int>(i) % a.head_dim;
    const int row = static_cast<int>(i) / a.head_dim;
    float max = -Infinity(), sum = 0.0f, acc = 0.0f;
    constexpr int kAtOnce = 8;  // on their way from memory
    for (int first = 0; first < count; first += kAtOnce) {
      float maxima[kAtOnce], sums[kAtOnce], accs[kAtOnce];
      HEARTH_GPU_UNROLL
      for (int k = 0; k < kAtOnce; ++k) {
        const float* state = StateOf(a, kRows, block.x(), block.y(),
                                     Least(first + k, count - 1)) +
                             row;
        maxima[k] = state[a.head_dim * kRows];
        sums[k] = state[(a.head_dim + 1) * kRows];
        accs[k] = state[d * kRows];
      }
      HEARTH_GPU_UNROLL
      for (int k = 0; k < kAtOnce; ++k) {
        if (first + k >= count || sums[k] == 0.0f) continue;
        if (sum == 0.0f) {
          max = maxima[k];
          sum = sums[k];
          acc = accs[k];
        } else if (maxima[k] != -Infinity()) {
          const float both = maxima[k] > max ? maxima[k] : max;
          const float scale_a = ExpNegative(max - both);
          const float scale_b = ExpNegative(maxima[k] - both);
          acc = Fma(acc, scale_a, accs[k] * scale_b);
          sum = Fma(sum, scale_a, sums[k] * scale_b);
          max = both;
        }
      }
    }
    const int head = task.first_head + row % a.group;
    const SinkFactors f = FactorsOf(a.sinks, head, max, sum);
    const std::int64_t at = task.row0 + row / a.group;
    a.out[(at * a.n_heads + head) * a.head_dim + d] = Finished(f, acc);
  });
}

}  // namespace hearth::gpu
