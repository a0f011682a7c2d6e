#include "model/cpu/attention.h"

#include <algorithm>
#include <limits>

namespace hearth {
namespace {

constexpr int kSegmentTokens = 512;
// Query rows per task: enough to reuse each loaded key and value, few enough
// to stay in the first-level cache.
constexpr int kRowsPerTask = 32;
// Where keys are values, a tile is transposed for each task: more rows pay.
constexpr int kRowsPerLatentTask = 128;

// The first position that a row at `position` sees.
int WindowStart(int position, int window) {
  return window > 0 ? std::max(0, position - window + 1) : 0;
}

std::size_t PadTo16(std::size_t n) { return (n + 15) / 16 * 16; }

int SegmentTokens(const KvPort& kv) {
  const int block = kv.block_tokens();
  return (kSegmentTokens + block - 1) / block * block;
}

}  // namespace

Attention::Attention(const ModelConfig& config, ThreadPool& pool)
    : config_(config),
      pool_(pool),
      kernels_(ActiveKernels()),
      work_(static_cast<std::size_t>(pool.n_threads())) {}

std::size_t Attention::StateFloats(const LayerPlan& layer, int n_rows) {
  const auto rows = static_cast<std::size_t>(n_rows);
  return 2 * PadTo16(rows) +
         PadTo16(rows * static_cast<std::size_t>(layer.head_dim));
}

Attention::State Attention::StateAt(float* memory, int n_rows) {
  const std::size_t rows = PadTo16(static_cast<std::size_t>(n_rows));
  return {memory, memory + rows, memory + 2 * rows};
}

std::size_t Attention::QueryFloats(const LayerPlan& layer, int n_rows) {
  const std::size_t floats = PadTo16(static_cast<std::size_t>(n_rows) *
                                     static_cast<std::size_t>(layer.head_dim));
  return layer.sight.sink_tokens > 0 ? 2 * floats : floats;
}

Attention::Segments Attention::SegmentsOf(const LayerPlan& layer,
                                          const AttentionPart& part,
                                          const RowSet& rows) const {
  const int n = SegmentTokens(*part.kv);
  const int last = part.first_position + rows.t_end - 1;
  const int end = last / n + 1;
  const int first =
      WindowStart(part.first_position + rows.t_begin, layer.sight.window) / n;
  const int n_sink = std::min((layer.sight.sink_tokens + n - 1) / n, first);
  return {n_sink, first, end};
}

Attention::Cut Attention::CutOf(const LayerPlan& layer,
                                const AttentionPart& part) const {
  const int rows = layer.value_dim > 0 ? kRowsPerTask : kRowsPerLatentTask;
  const int positions = std::max(1, rows / layer.group());
  return {positions, (part.n_rows + positions - 1) / positions,
          SegmentsOf(layer, part, {0, 0, part.n_rows})};
}

Result<void> Attention::Reserve(std::span<const LayerPlan> layers,
                                std::span<const AttentionPart> parts) {
  std::size_t thread_floats = 0, scratch = 0, partial = 0, values = 0;
  int head_dim = 0;
  for (const LayerPlan& layer : layers) {
    head_dim = std::max(head_dim, layer.head_dim);
    std::size_t split_floats = 0;
    for (const AttentionPart& part : parts) {
      scratch = std::max(scratch, kernels_.attend_scratch_bytes(
                                      layer.head_dim, part.kv->block_tokens()));
      if (layer.value_dim == 0) {
        values = std::max(
            values,
            static_cast<std::size_t>(layer.head_dim * part.kv->block_tokens()));
      }
      const AttentionPart last{part.kv, 0, 1,
                               part.first_position + part.n_rows - 1};
      std::size_t part_floats = 0;
      for (const AttentionPart& some : {part, last}) {
        const Cut cut = CutOf(layer, some);
        const int n_rows =
            std::min(cut.positions_per_task, some.n_rows) * layer.group();
        const std::size_t state = StateFloats(layer, n_rows);
        const std::size_t queries = QueryFloats(layer, n_rows);
        thread_floats = std::max(thread_floats, queries + 2 * state);
        if (!cut.splits()) continue;
        const auto n_states =
            static_cast<std::size_t>(layer.n_kv_heads * cut.segments.count());
        part_floats = std::max(part_floats, n_states * (state + queries));
      }
      split_floats += part_floats;
    }
    partial = std::max(partial, split_floats);
  }
  zeros_.resize(static_cast<std::size_t>(head_dim), 0.0f);
  HEARTH_TRY(partial_.ReserveFloats(partial));
  for (Work& work : work_) {
    HEARTH_TRY(work.floats.ReserveFloats(thread_floats));
    HEARTH_TRY(work.kernel.Reserve(scratch));
    HEARTH_TRY(work.values.ReserveFloats(values));
  }
  return {};
}

Attention::Queries Attention::GatherQueries(const AttentionCall& call,
                                            const AttentionPart& part,
                                            const RowSet& rows,
                                            float* memory) const {
  const int n = call.layer.group() * call.layer.head_dim;
  const auto gather = [&](const QueryRows& from, float* to) {
    for (int t = rows.t_begin; t < rows.t_end; ++t) {
      const float* source =
          from.data + (part.first_row + t) * from.stride + rows.kv_head * n;
      for (int i = 0; i < n; ++i) *to++ = source[i] * config_.attention_scale;
    }
  };
  gather(call.q, memory);
  if (call.layer.sight.sink_tokens == 0) return {memory, nullptr};
  const int n_rows = rows.n_rows(call.layer.group());
  float* sink = memory + QueryFloats(call.layer, n_rows) / 2;
  gather(call.q_sink, sink);
  return {memory, sink};
}

void Attention::UseKeysAsValues(const LayerPlan& layer, Work& work,
                                KvTile& tile) const {
  float* values = work.values.GetFloats(0);
  kernels_.keys_as_values(tile, layer.head_dim, values);
  tile.values = reinterpret_cast<const std::byte*>(values);
  tile.value_format = KvFormat::kF32;
  tile.value_params = tile.next_values = nullptr;
}

// One block's tokens that are sinks, or those that are not, for rows that see
// some of them.
void Attention::AttendBlock(const AttentionCall& call,
                            const AttentionPart& part, const RowSet& rows,
                            int block, Kind kind, const float* q, Work& work,
                            State state) {
  const HostKvPort& kv = *part.kv;
  const LayerPlan& layer = call.layer;
  const int group = layer.group();
  const int n_rows = rows.n_rows(group);
  const int block_tokens = kv.block_tokens();
  const int base = block * block_tokens;
  const int first_position = part.first_position + rows.t_begin;
  const LayerSight& sight = layer.sight;
  work.begin.resize(static_cast<std::size_t>(n_rows));
  work.visible.resize(static_cast<std::size_t>(n_rows));
  for (int r = 0; r < n_rows; ++r) {
    const int position = first_position + r / group;
    int begin = 0;
    int end = position + 1;
    if (kind == Kind::kSinks) {
      end = std::min(end, sight.sink_tokens);
    } else {
      begin = std::max(sight.sink_tokens, WindowStart(position, sight.window));
    }
    const auto i = static_cast<std::size_t>(r);
    work.begin[i] = std::max(0, begin - base);
    work.visible[i] = std::min(block_tokens, end - base);
  }
  std::byte* scratch = work.kernel.Get(
      kernels_.attend_scratch_bytes(layer.head_dim, block_tokens));
  const auto attend = [&](KvTile tile, int from, int to) {
    const std::int64_t offset = std::int64_t{from} * layer.head_dim;
    if (layer.value_dim == 0) UseKeysAsValues(layer, work, tile);
    kernels_.attend_tile(q + offset, to - from, layer.head_dim, tile,
                         work.begin.data() + from, work.visible.data() + from,
                         config_.attention_softcap, state.max + from,
                         state.sum + from, state.acc + offset, scratch);
  };
  // Rows of the block itself see it as it was written, later ones as it is
  // kept.
  int n_own = 0;
  if (kv.quantises() && base + block_tokens > kv.n_tokens()) {
    const int n_positions = base + block_tokens - first_position;
    n_own = std::clamp(n_positions * group, 0, n_rows);
  }
  if (n_own > 0) {
    attend(kv.OwnTile(layer.kv_layer, rows.kv_head, block), 0, n_own);
  }
  if (n_own < n_rows) {
    KvTile tile = kv.Tile(layer.kv_layer, rows.kv_head, block);
    // Behind a sink the next block may have been let go of.
    const int last = part.first_position + rows.t_end - 1;
    if (kind == Kind::kWindow && block < last / block_tokens) {
      tile.Precede(kv.Tile(layer.kv_layer, rows.kv_head, block + 1));
    }
    attend(tile, n_own, n_rows);
  }
}

void Attention::AttendSegment(const AttentionCall& call,
                              const AttentionPart& part, const RowSet& rows,
                              int segment, const Queries& queries, Work& work,
                              State state) {
  const LayerPlan& layer = call.layer;
  const int n_rows = rows.n_rows(layer.group());
  std::fill_n(state.max, n_rows, -std::numeric_limits<float>::infinity());
  std::fill_n(state.sum, n_rows, 0.0f);
  std::fill_n(state.acc, n_rows * layer.head_dim, 0.0f);

  const int block_tokens = part.kv->block_tokens();
  const int blocks = SegmentTokens(*part.kv) / block_tokens;
  const int first_position = part.first_position + rows.t_begin;
  const int last_position = part.first_position + rows.t_end - 1;
  const int first_seen =
      WindowStart(first_position, layer.sight.window) / block_tokens;
  const int end =
      std::min((segment + 1) * blocks, last_position / block_tokens + 1);
  for (int block = segment * blocks; block < end; ++block) {
    if (block * block_tokens < layer.sight.sink_tokens) {
      AttendBlock(call, part, rows, block, Kind::kSinks, queries.q_sink, work,
                  state);
    }
    if (block >= first_seen) {
      AttendBlock(call, part, rows, block, Kind::kWindow, queries.q, work,
                  state);
    }
  }
}

void Attention::Merge(const LayerPlan& layer, State into, State from,
                      int n_rows) const {
  const auto d = std::int64_t{layer.head_dim};
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
                             layer.head_dim);
  }
}

void Attention::Finish(const AttentionCall& call, const AttentionPart& part,
                       State state, const RowSet& rows) const {
  const LayerPlan& layer = call.layer;
  const int group = layer.group();
  const int d = layer.head_dim;
  const std::vector<float>& sinks = layer.weights->sinks;
  for (int r = 0; r < rows.n_rows(group); ++r) {
    const int row = part.first_row + rows.t_begin + r / group;
    const int head = rows.kv_head * group + r % group;
    float* acc = state.acc + std::int64_t{r} * d;
    if (!sinks.empty()) {
      // A token of weight one and value zero.
      kernels_.merge_attention(state.max + r, state.sum + r, acc,
                               sinks[static_cast<std::size_t>(head)], 1.0f,
                               zeros_.data(), d);
    }
    kernels_.finish_attention(state.sum[r], acc, d,
                              call.out + row * layer.q_dim() + head * d);
  }
}

void Attention::RunWhole(const AttentionCall& call, const Task& task,
                         Work& work) {
  const LayerPlan& layer = call.layer;
  const AttentionPart& part = *task.part;
  const RowSet& rows = task.rows;
  const int n_rows = rows.n_rows(layer.group());
  const std::size_t q_floats = QueryFloats(layer, n_rows);
  const std::size_t state_floats = StateFloats(layer, n_rows);
  float* memory = work.floats.GetFloats(q_floats + 2 * state_floats);
  const Queries queries = GatherQueries(call, part, rows, memory);
  const State total = StateAt(memory + q_floats, n_rows);
  const State more = StateAt(memory + q_floats + state_floats, n_rows);
  const Segments segments = SegmentsOf(layer, part, rows);
  for (int i = 0; i < segments.count(); ++i) {
    AttendSegment(call, part, rows, segments.At(i), queries, work,
                  i == 0 ? total : more);
    if (i > 0) Merge(layer, total, more, n_rows);
  }
  Finish(call, part, total, rows);
}

void Attention::RunSegment(const AttentionCall& call, const Task& task,
                           Work& work) {
  const int n_rows = task.rows.n_rows(call.layer.group());
  const Queries queries =
      GatherQueries(call, *task.part, task.rows,
                    task.memory + StateFloats(call.layer, n_rows));
  AttendSegment(call, *task.part, task.rows, task.segment, queries, work,
                StateAt(task.memory, n_rows));
}

void Attention::MergeSplit(const AttentionCall& call,
                           const Split& split) const {
  const LayerPlan& layer = call.layer;
  const int n_rows = split.rows.n_rows(layer.group());
  const std::size_t floats =
      StateFloats(layer, n_rows) + QueryFloats(layer, n_rows);
  const State total = StateAt(split.states, n_rows);
  for (int i = 1; i < split.n_segments; ++i) {
    float* memory = split.states + static_cast<std::size_t>(i) * floats;
    Merge(layer, total, StateAt(memory, n_rows), n_rows);
  }
  Finish(call, *split.part, total, split.rows);
}

void Attention::AddWhole(const AttentionCall& call, const AttentionPart& part,
                         const Cut& cut) {
  // The late rows see the most tokens: start with them.
  for (int tile = cut.n_row_tasks - 1; tile >= 0; --tile) {
    const int begin = tile * cut.positions_per_task;
    const int end = std::min(part.n_rows, begin + cut.positions_per_task);
    for (int head = 0; head < call.layer.n_kv_heads; ++head) {
      tasks_.push_back({&part, {head, begin, end}, -1, nullptr});
    }
  }
}

void Attention::AddSplit(const AttentionCall& call, const AttentionPart& part,
                         const Cut& cut, float*& memory) {
  const LayerPlan& layer = call.layer;
  const int n_rows = part.n_rows * layer.group();
  const std::size_t floats =
      StateFloats(layer, n_rows) + QueryFloats(layer, n_rows);
  for (int head = 0; head < layer.n_kv_heads; ++head) {
    const RowSet rows{head, 0, part.n_rows};
    splits_.push_back({&part, rows, cut.segments.count(), memory});
    for (int i = 0; i < cut.segments.count(); ++i) {
      tasks_.push_back({&part, rows, cut.segments.At(i), memory});
      memory += floats;
    }
  }
}

void Attention::Run(const AttentionCall& call) {
  tasks_.clear();
  splits_.clear();
  float* memory = partial_.GetFloats(0);
  // Parts of many rows first: their tasks are the longest.
  for (const bool few_rows : {false, true}) {
    for (const AttentionPart& part : call.parts) {
      const Cut cut = CutOf(call.layer, part);
      if (cut.few_rows() != few_rows) continue;
      if (cut.splits() && pool_.n_used() > 1) {
        AddSplit(call, part, cut, memory);
      } else {
        AddWhole(call, part, cut);
      }
    }
  }
  pool_.ParallelFor(static_cast<std::int64_t>(tasks_.size()),
                    [&](std::int64_t i, int thread) {
                      const Task& task = tasks_[static_cast<std::size_t>(i)];
                      Work& work = work_[static_cast<std::size_t>(thread)];
                      if (task.segment < 0) {
                        RunWhole(call, task, work);
                      } else {
                        RunSegment(call, task, work);
                      }
                    });
  if (call.parts.size() == 1) {
    // Less work than handing it out.
    for (const Split& split : splits_) MergeSplit(call, split);
    return;
  }
  pool_.ParallelFor(static_cast<std::int64_t>(splits_.size()),
                    [&](std::int64_t i, int) {
                      MergeSplit(call, splits_[static_cast<std::size_t>(i)]);
                    });
}

}  // namespace hearth
