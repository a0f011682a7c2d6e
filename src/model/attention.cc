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

std::size_t PadTo16(std::size_t n) { return (n + 15) / 16 * 16; }

}  // namespace

Attention::Attention(const ModelConfig& config, ThreadPool& pool)
    : config_(config),
      pool_(pool),
      kernels_(ActiveKernels()),
      group_(config.n_heads / config.n_kv_heads),
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

void Attention::GatherQueries(const float* q, const RowSet& rows,
                              float* gathered) const {
  const int d = config_.head_dim;
  const std::int64_t q_stride = std::int64_t{config_.n_heads} * d;
  for (int t = rows.t_begin; t < rows.t_end; ++t) {
    const float* source = q + t * q_stride + rows.kv_head * group_ * d;
    for (int i = 0; i < group_ * d; ++i) {
      *gathered++ = source[i] * config_.attention_scale;
    }
  }
}

void Attention::AttendSegment(const KvPort& kv, int kv_layer,
                              const RowSet& rows, int segment, const float* q,
                              Work& work, State state) {
  const int n_rows = rows.n_rows(group_);
  std::fill_n(state.max, n_rows, -std::numeric_limits<float>::infinity());
  std::fill_n(state.sum, n_rows, 0.0f);
  std::fill_n(state.acc, n_rows * config_.head_dim, 0.0f);
  work.visible.resize(static_cast<std::size_t>(n_rows));

  const int block_tokens = kv.block_tokens();
  const int first = segment * segment_tokens(kv) / block_tokens;
  const int last_position = kv.n_tokens() + rows.t_end - 1;
  const int end = std::min((segment + 1) * segment_tokens(kv) / block_tokens,
                           last_position / block_tokens + 1);
  std::byte* scratch = work.kernel.Get(
      kernels_.attend_scratch_bytes(n_rows, config_.head_dim, block_tokens));
  for (int block = first; block < end; ++block) {
    const KvTile tile = kv.Tile(kv_layer, rows.kv_head, block);
    for (int r = 0; r < n_rows; ++r) {
      const int position = kv.n_tokens() + rows.t_begin + r / group_;
      work.visible[static_cast<std::size_t>(r)] =
          std::min(tile.n_tokens, position + 1 - block * block_tokens);
    }
    kernels_.attend_tile(kv.format(), q, n_rows, config_.head_dim, tile, 0,
                         work.visible.data(), state.max, state.sum, state.acc,
                         scratch);
  }
}

void Attention::Merge(State into, State from, int n_rows) const {
  for (int r = 0; r < n_rows; ++r) {
    const std::int64_t at = std::int64_t{r} * config_.head_dim;
    if (from.sum[r] == 0.0f) continue;  // nothing of this segment is visible
    kernels_.merge_attention(into.max + r, into.sum + r, into.acc + at,
                             from.max[r], from.sum[r], from.acc + at,
                             config_.head_dim);
  }
}

void Attention::Finish(State state, const RowSet& rows, float* out) const {
  const int d = config_.head_dim;
  const std::int64_t out_stride = std::int64_t{config_.n_heads} * d;
  for (int r = 0; r < rows.n_rows(group_); ++r) {
    const int t = rows.t_begin + r / group_;
    const int head = rows.kv_head * group_ + r % group_;
    kernels_.finish_attention(state.sum[r], state.acc + std::int64_t{r} * d, d,
                              out + t * out_stride + head * d);
  }
}

void Attention::RunWhole(const KvPort& kv, int kv_layer, const RowSet& rows,
                         int n_segments, const float* q, float* out,
                         Work& work) {
  const int n_rows = rows.n_rows(group_);
  const std::size_t q_floats = PadTo16(static_cast<std::size_t>(n_rows) *
                                       static_cast<std::size_t>(config_.head_dim));
  const std::size_t state_floats = StateFloats(n_rows);
  float* memory = work.floats.GetFloats(q_floats + 2 * state_floats);
  GatherQueries(q, rows, memory);
  const State total = StateAt(memory + q_floats, n_rows);
  const State part = StateAt(memory + q_floats + state_floats, n_rows);
  for (int segment = 0; segment < n_segments; ++segment) {
    AttendSegment(kv, kv_layer, rows, segment, memory, work,
                  segment == 0 ? total : part);
    if (segment > 0) Merge(total, part, n_rows);
  }
  Finish(total, rows, out);
}

void Attention::RunSplit(const KvPort& kv, int kv_layer, int n_rows,
                         int n_segments, const float* q, float* out) {
  const int rows_per_head = n_rows * group_;
  const std::size_t q_floats =
      PadTo16(static_cast<std::size_t>(rows_per_head) *
              static_cast<std::size_t>(config_.head_dim));
  const std::size_t state_floats = StateFloats(rows_per_head);
  const auto n_states = static_cast<std::size_t>(config_.n_kv_heads) *
                        static_cast<std::size_t>(n_segments);
  float* memory = partial_.GetFloats(n_states * (q_floats + state_floats));
  const auto state_of = [&](std::int64_t i) {
    return StateAt(memory + static_cast<std::size_t>(i) * state_floats,
                   rows_per_head);
  };
  pool_.ParallelFor(static_cast<std::int64_t>(n_states),
                    [&](std::int64_t i, int thread) {
    const RowSet rows{static_cast<int>(i / n_segments), 0, n_rows};
    float* gathered = memory + n_states * state_floats +
                      static_cast<std::size_t>(i) * q_floats;
    GatherQueries(q, rows, gathered);
    AttendSegment(kv, kv_layer, rows, static_cast<int>(i % n_segments),
                  gathered, work_[static_cast<std::size_t>(thread)],
                  state_of(i));
  });
  for (int head = 0; head < config_.n_kv_heads; ++head) {
    const std::int64_t first = std::int64_t{head} * n_segments;
    for (int segment = 1; segment < n_segments; ++segment) {
      Merge(state_of(first), state_of(first + segment), rows_per_head);
    }
    Finish(state_of(first), {head, 0, n_rows}, out);
  }
}

void Attention::Run(const KvPort& kv, int kv_layer, const float* q, int n_rows,
                    float* out) {
  const int positions_per_task = std::max(1, kRowsPerTask / group_);
  const int n_row_tasks = (n_rows + positions_per_task - 1) / positions_per_task;
  const int n_tasks = config_.n_kv_heads * n_row_tasks;
  const auto n_segments = [&](int t_end) {
    return (kv.n_tokens() + t_end - 1) / segment_tokens(kv) + 1;
  };
  if (n_row_tasks == 1 && n_segments(n_rows) > 1 && pool_.n_threads() > 1) {
    RunSplit(kv, kv_layer, n_rows, n_segments(n_rows), q, out);
    return;
  }
  pool_.ParallelFor(n_tasks, [&](std::int64_t i, int thread) {
    // The late rows see the most tokens: start with them.
    const int tile = n_row_tasks - 1 - static_cast<int>(i / config_.n_kv_heads);
    RowSet rows;
    rows.kv_head = static_cast<int>(i % config_.n_kv_heads);
    rows.t_begin = tile * positions_per_task;
    rows.t_end = std::min(n_rows, rows.t_begin + positions_per_task);
    RunWhole(kv, kv_layer, rows, n_segments(rows.t_end), q, out,
             work_[static_cast<std::size_t>(thread)]);
  });
}

}  // namespace hearth
