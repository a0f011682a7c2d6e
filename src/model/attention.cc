#include "model/attention.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace hearth {
namespace {

constexpr int kSegmentTokens = 512;
// Query rows per task: enough to reuse each loaded key and value, few enough
// to stay in the first-level cache.
constexpr int kRowsPerTask = 32;

// The first position that a row at `position` sees.
int WindowStart(int position, int window) {
  return window > 0 ? std::max(0, position - window + 1) : 0;
}

std::size_t PadTo16(std::size_t n) { return (n + 15) / 16 * 16; }

}  // namespace

Attention::Attention(const ModelConfig& config, ThreadPool& pool)
    : config_(config),
      pool_(pool),
      kernels_(ActiveKernels()),
      group_(config.n_heads / config.n_kv_heads),
      zeros_(static_cast<std::size_t>(config.head_dim), 0.0f),
      work_(static_cast<std::size_t>(pool.n_threads())) {}

int Attention::segment_tokens(const KvPort& kv) const {
  const int block = kv.block_tokens();
  return (kSegmentTokens + block - 1) / block * block;
}

std::size_t Attention::StateFloats(int n_rows) const {
  const auto rows = static_cast<std::size_t>(n_rows);
  return 2 * PadTo16(rows) +
         PadTo16(rows * static_cast<std::size_t>(config_.head_dim));
}

Attention::State Attention::StateAt(float* memory, int n_rows) const {
  const std::size_t rows = PadTo16(static_cast<std::size_t>(n_rows));
  return {memory, memory + rows, memory + 2 * rows};
}

Attention::Segments Attention::SegmentsOf(const AttentionCall& call,
                                          const RowSet& rows) const {
  const int n = segment_tokens(call.kv);
  const int last = call.first_position + rows.t_end - 1;
  const int end = last / n + 1;
  const int first =
      WindowStart(call.first_position + rows.t_begin, call.sight.window) / n;
  const int n_sink = std::min((call.sight.sink_tokens + n - 1) / n, first);
  return {n_sink, first, end};
}

std::size_t Attention::QueryFloats(const AttentionCall& call,
                                   int n_rows) const {
  const std::size_t floats =
      PadTo16(static_cast<std::size_t>(n_rows) *
              static_cast<std::size_t>(config_.head_dim));
  return call.sight.sink_tokens > 0 ? 2 * floats : floats;
}

Attention::Queries Attention::GatherQueries(const AttentionCall& call,
                                            const RowSet& rows,
                                            float* memory) const {
  const int n = group_ * config_.head_dim;
  const auto gather = [&](const QueryRows& from, float* to) {
    for (int t = rows.t_begin; t < rows.t_end; ++t) {
      const float* source = from.data + t * from.stride + rows.kv_head * n;
      for (int i = 0; i < n; ++i) *to++ = source[i] * config_.attention_scale;
    }
  };
  gather(call.q, memory);
  if (call.sight.sink_tokens == 0) return {memory, nullptr};
  float* sink = memory + QueryFloats(call, rows.n_rows(group_)) / 2;
  gather(call.q_sink, sink);
  return {memory, sink};
}

// One block's tokens that are sinks, or those that are not, for rows that see
// some of them.
void Attention::AttendBlock(const AttentionCall& call, const RowSet& rows,
                            int block, Part part, const float* q, Work& work,
                            State state) {
  const KvPort& kv = call.kv;
  const int n_rows = rows.n_rows(group_);
  const int block_tokens = kv.block_tokens();
  const int base = block * block_tokens;
  const int first_position = call.first_position + rows.t_begin;
  const LayerSight& sight = call.sight;
  work.begin.resize(static_cast<std::size_t>(n_rows));
  work.visible.resize(static_cast<std::size_t>(n_rows));
  for (int r = 0; r < n_rows; ++r) {
    const int position = first_position + r / group_;
    int begin = 0;
    int end = position + 1;
    if (part == Part::kSinks) {
      end = std::min(end, sight.sink_tokens);
    } else {
      begin = std::max(sight.sink_tokens, WindowStart(position, sight.window));
    }
    const auto i = static_cast<std::size_t>(r);
    work.begin[i] = std::max(0, begin - base);
    work.visible[i] = std::min(block_tokens, end - base);
  }
  std::byte* scratch = work.kernel.Get(
      kernels_.attend_scratch_bytes(config_.head_dim, block_tokens));
  const auto attend = [&](const KvTile& tile, int from, int to) {
    const std::int64_t offset = std::int64_t{from} * config_.head_dim;
    kernels_.attend_tile(q + offset, to - from, config_.head_dim, tile,
                         work.begin.data() + from, work.visible.data() + from,
                         config_.attention_softcap, state.max + from,
                         state.sum + from, state.acc + offset, scratch);
  };
  // Rows of the block itself see it as it was written, later ones as it is
  // kept.
  int n_own = 0;
  if (kv.quantises() && base + block_tokens > kv.n_tokens()) {
    const int n_positions = base + block_tokens - first_position;
    n_own = std::clamp(n_positions * group_, 0, n_rows);
  }
  if (n_own > 0)
    attend(kv.OwnTile(call.kv_layer, rows.kv_head, block), 0, n_own);
  if (n_own < n_rows) {
    KvTile tile = kv.Tile(call.kv_layer, rows.kv_head, block);
    // Behind a sink the next block may have been let go of.
    const int last = call.first_position + rows.t_end - 1;
    if (part == Part::kWindow && block < last / block_tokens) {
      tile.Precede(kv.Tile(call.kv_layer, rows.kv_head, block + 1));
    }
    attend(tile, n_own, n_rows);
  }
}

void Attention::AttendSegment(const AttentionCall& call, const RowSet& rows,
                              int segment, const Queries& queries, Work& work,
                              State state) {
  const int n_rows = rows.n_rows(group_);
  std::fill_n(state.max, n_rows, -std::numeric_limits<float>::infinity());
  std::fill_n(state.sum, n_rows, 0.0f);
  std::fill_n(state.acc, n_rows * config_.head_dim, 0.0f);

  const int block_tokens = call.kv.block_tokens();
  const int blocks = segment_tokens(call.kv) / block_tokens;
  const int first_position = call.first_position + rows.t_begin;
  const int last_position = call.first_position + rows.t_end - 1;
  const int first_seen =
      WindowStart(first_position, call.sight.window) / block_tokens;
  const int end =
      std::min((segment + 1) * blocks, last_position / block_tokens + 1);
  for (int block = segment * blocks; block < end; ++block) {
    if (block * block_tokens < call.sight.sink_tokens) {
      AttendBlock(call, rows, block, Part::kSinks, queries.q_sink, work, state);
    }
    if (block >= first_seen) {
      AttendBlock(call, rows, block, Part::kWindow, queries.q, work, state);
    }
  }
}

void Attention::Merge(State into, State from, int n_rows) const {
  const auto d = std::int64_t{config_.head_dim};
  for (int r = 0; r < n_rows; ++r) {
    if (from.sum[r] == 0.0f) continue;  // nothing of this segment is visible
    if (into.sum[r] == 0.0f) {
      // The row's first segment, which another cut of the prompt would have
      // begun with: taken as it is, to the sign of a zero.
      into.max[r] = from.max[r];
      into.sum[r] = from.sum[r];
      std::copy_n(from.acc + r * d, d, into.acc + r * d);
      continue;
    }
    kernels_.merge_attention(into.max + r, into.sum + r, into.acc + r * d,
                             from.max[r], from.sum[r], from.acc + r * d,
                             config_.head_dim);
  }
}

void Attention::Finish(const AttentionCall& call, State state,
                       const RowSet& rows) const {
  const int d = config_.head_dim;
  const std::int64_t out_stride = std::int64_t{config_.n_heads} * d;
  for (int r = 0; r < rows.n_rows(group_); ++r) {
    const int t = rows.t_begin + r / group_;
    const int head = rows.kv_head * group_ + r % group_;
    float* acc = state.acc + std::int64_t{r} * d;
    if (call.sinks != nullptr) {
      // A token of weight one and value zero.
      kernels_.merge_attention(state.max + r, state.sum + r, acc,
                               call.sinks[head], 1.0f, zeros_.data(), d);
    }
    kernels_.finish_attention(state.sum[r], acc, d,
                              call.out + t * out_stride + head * d);
  }
}

void Attention::RunWhole(const AttentionCall& call, const RowSet& rows,
                         Work& work) {
  const int n_rows = rows.n_rows(group_);
  const std::size_t q_floats = QueryFloats(call, n_rows);
  const std::size_t state_floats = StateFloats(n_rows);
  float* memory = work.floats.GetFloats(q_floats + 2 * state_floats);
  const Queries queries = GatherQueries(call, rows, memory);
  const State total = StateAt(memory + q_floats, n_rows);
  const State part = StateAt(memory + q_floats + state_floats, n_rows);
  const Segments segments = SegmentsOf(call, rows);
  for (int i = 0; i < segments.count(); ++i) {
    AttendSegment(call, rows, segments.At(i), queries, work,
                  i == 0 ? total : part);
    if (i > 0) Merge(total, part, n_rows);
  }
  Finish(call, total, rows);
}

void Attention::RunSplit(const AttentionCall& call, Segments segments) {
  const int rows_per_head = call.n_rows * group_;
  const std::size_t q_floats = QueryFloats(call, rows_per_head);
  const std::size_t state_floats = StateFloats(rows_per_head);
  const int n_segments = segments.count();
  const auto n_states = static_cast<std::size_t>(config_.n_kv_heads) *
                        static_cast<std::size_t>(n_segments);
  float* memory = partial_.GetFloats(n_states * (q_floats + state_floats));
  const auto state_of = [&](std::int64_t i) {
    return StateAt(memory + static_cast<std::size_t>(i) * state_floats,
                   rows_per_head);
  };
  pool_.ParallelFor(
      static_cast<std::int64_t>(n_states), [&](std::int64_t i, int thread) {
        const RowSet rows{static_cast<int>(i / n_segments), 0, call.n_rows};
        float* gathered = memory + n_states * state_floats +
                          static_cast<std::size_t>(i) * q_floats;
        const Queries queries = GatherQueries(call, rows, gathered);
        AttendSegment(call, rows, segments.At(static_cast<int>(i % n_segments)),
                      queries, work_[static_cast<std::size_t>(thread)],
                      state_of(i));
      });
  for (int head = 0; head < config_.n_kv_heads; ++head) {
    const std::int64_t first = std::int64_t{head} * n_segments;
    for (int segment = 1; segment < n_segments; ++segment) {
      Merge(state_of(first), state_of(first + segment), rows_per_head);
    }
    Finish(call, state_of(first), {head, 0, call.n_rows});
  }
}

void Attention::Run(const AttentionCall& call) {
  const int n_rows = call.n_rows;
  const int positions_per_task = std::max(1, kRowsPerTask / group_);
  const int n_row_tasks =
      (n_rows + positions_per_task - 1) / positions_per_task;
  const int n_tasks = config_.n_kv_heads * n_row_tasks;
  const Segments segments = SegmentsOf(call, {0, 0, n_rows});
  if (n_row_tasks == 1 && segments.count() > 1 && pool_.n_used() > 1) {
    RunSplit(call, segments);
    return;
  }
  pool_.ParallelFor(n_tasks, [&](std::int64_t i, int thread) {
    // The late rows see the most tokens: start with them.
    const int tile = n_row_tasks - 1 - static_cast<int>(i / config_.n_kv_heads);
    RowSet rows;
    rows.kv_head = static_cast<int>(i % config_.n_kv_heads);
    rows.t_begin = tile * positions_per_task;
    rows.t_end = std::min(n_rows, rows.t_begin + positions_per_task);
    RunWhole(call, rows, work_[static_cast<std::size_t>(thread)]);
  });
}

}  // namespace hearth
