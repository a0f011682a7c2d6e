#include "model/cuda/step_data.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "cuda/kernel_table.h"
#include "model/device_kv.h"

namespace hearth {
namespace {

constexpr int kSegmentTokens = 512;
constexpr int kRowsMax = 8;  // of a block of threads in attention
constexpr std::size_t kAlign = 64;
constexpr std::size_t kTableAlign = 2048;  // of blocks' addresses
constexpr std::size_t kSentAlign = 65536;  // of all that is sent

int BlocksOf(int n_tokens, int block_tokens) {
  return (n_tokens + block_tokens - 1) / block_tokens;
}

// The model's one sight with sink tokens; without any, one that sees all.
LayerSight SinkSight(std::span<const LayerPlan> layers) {
  for (const LayerPlan& layer : layers) {
    if (layer.sight.sink_tokens > 0) return layer.sight;
  }
  return {};
}

}  // namespace

int StepData::SegmentTokens(int block_tokens) {
  return BlocksOf(kSegmentTokens, block_tokens) * block_tokens;
}

StepData::StepData(const ModelConfig& config, std::span<const LayerPlan> layers,
                   gpu::Device& device, DeviceKvMemory& kv)
    : config_(config),
      layers_(layers),
      device_(device),
      kv_(kv),
      sent_(device),
      inner_(device) {}

// --- Memory ------------------------------------------------------------------

Result<void> StepData::ReserveBlocks(const StepBatch& batch) {
  kv_.BeginStep();
  int n_new = 0, n_floats = 0;
  std::size_t bytes = 0, float_bytes = 0;
  std::int64_t n_inner = 0;
  inner_of_.clear();
  for (const PartRows& part : batch.parts) {
    DeviceKvPort& port = *part.kv->device();
    const int n = part.kv->block_tokens();
    const bool quantises = part.kv->quantises();
    const int end = part.first_position + part.n_rows;
    bytes = port.BytesOfBlock(false);
    for (int b = 0; b < port.n_device_blocks(); ++b) {
      const DeviceBlock block = port.BlockAt(b);
      if (!block.bytes.empty() && kv_.Touch(block)) ++n_new;
    }
    const int n_after = quantises ? end / n : BlocksOf(end, n);
    // One more where the newest block has to be copied first.
    n_new += n_after - port.n_device_blocks() + 1;
    if (!quantises) continue;
    float_bytes = port.BytesOfBlock(true);
    const DeviceBlock tail = port.FloatsAt(part.first_position / n);
    if (!tail.bytes.empty() && kv_.Touch(tail)) ++n_floats;
    ++n_floats;
    inner_of_[part.kv] = n_inner;
    n_inner += std::max(0, end / n - BlocksOf(part.first_position, n));
    inner_bytes_ = 0;
    for (const LayerPlan& layer : layers_) {
      if (!layer.owns_kv) continue;
      const KvPlaceInBlock place = port.PlaceOf(layer.kv_layer, true);
      const auto heads = static_cast<std::size_t>(layer.n_kv_heads);
      inner_bytes_ =
          std::max(inner_bytes_,
                   (place.values + heads * place.value_step + 63) / 64 * 64);
    }
  }
  HEARTH_TRY(kv_.MakeRoom(bytes, n_new));
  if (n_floats > 0) HEARTH_TRY(kv_.MakeRoom(float_bytes, n_floats));
  return inner_.Reserve(static_cast<std::uint64_t>(n_inner) * inner_bytes_);
}

Result<void> StepData::Reserve(const StepBatch& batch) {
  HEARTH_TRY(ReserveBlocks(batch));
  const auto n_rows = static_cast<std::size_t>(batch.n_rows());
  const std::size_t rope_floats =
      2 * (config_.rope.inv_freq.size() + config_.local_rope.inv_freq.size());
  std::size_t bytes = n_rows * (2 * rope_floats + 2) * sizeof(float);
  bytes += n_rows * kRowsMax * sizeof(gpu::RowTask);
  for (const PartRows& part : batch.parts) {
    const int n = part.kv->block_tokens();
    const int blocks = BlocksOf(part.first_position + part.n_rows, n) + 1;
    bytes += static_cast<std::size_t>(blocks) * 8 + sizeof(gpu::StepPart);
    bytes += static_cast<std::size_t>(part.n_rows / n + 2) * 16;
  }
  bytes += 64 * kAlign + 2 * kTableAlign;
  blob_bytes_ = (bytes + kSentAlign - 1) / kSentAlign * kSentAlign;
  return sent_.Reserve(blob_bytes_);
}

// --- What is sent
// --------------------------------------------------------------

template <class T>
const T* StepData::Put(std::span<const T> values, std::size_t align) {
  const std::size_t at = (blob_.size() + kAlign - 1) / kAlign * kAlign;
  // What follows lies where it lay a token ago: a step's launches are those of
  // the step before.
  blob_.resize(at + (values.size_bytes() + align) / align * align);
  HEARTH_CHECK(blob_.size() <= blob_bytes_);
  if (!values.empty()) {
    std::memcpy(blob_.data() + at, values.data(), values.size_bytes());
  }
  return reinterpret_cast<const T*>(sent_.at() + at);
}

RopeRows StepData::PutRope(const RopeConfig& rope,
                           std::span<const int> positions) {
  if (rope.rotary_dim == 0) return {};
  RopeTable table;
  table.Compute(rope, positions);
  const std::size_t n = rope.inv_freq.size() * positions.size();
  return {Put(std::span(table.cos(0), n)), Put(std::span(table.sin(0), n))};
}

void StepData::PutRopes(const StepBatch& batch) {
  rope_ = PutRope(config_.rope, batch.positions);
  local_rope_ = PutRope(config_.local_rope, batch.positions);
  const LayerSight sight = SinkSight(layers_);
  if (sight.sink_tokens > 0) {
    std::vector<int> positions;
    for (const int p : batch.positions) {
      positions.push_back(sight.SinkPosition(p));
    }
    sink_rope_ = PutRope(config_.rope, positions);
    local_sink_rope_ = PutRope(config_.local_rope, positions);
  }
  growth_ = nullptr;
  if (config_.query_growth.beta == 0) return;
  std::vector<float> growth;
  for (const int position : batch.positions) {
    // In double, as on the CPU.
    const int spans = position / config_.query_growth.tokens;
    growth.push_back(
        static_cast<float>(1 + double{config_.query_growth.beta} *
                                   std::log1p(static_cast<double>(spans))));
  }
  growth_ = Put(std::span<const float>(growth));
}

void StepData::PutPart(const PartRows& part, std::vector<gpu::StepPart>& parts,
                       std::vector<std::uint64_t>& tables,
                       std::vector<std::uint64_t>& own,
                       std::vector<int>& sealed) {
  DeviceKvPort& port = *part.kv->device();
  const int n = part.kv->block_tokens();
  const bool quantises = part.kv->quantises();
  // Before the step; `part` may be its last rows alone.
  const int n_before = part.kv->n_tokens();
  const int end = part.first_position + part.n_rows;
  const int first_new = n_before / n;
  const auto index = static_cast<int>(parts.size());
  parts.push_back({.first_row = part.first_row,
                   .n_rows = part.n_rows,
                   .first_position = part.first_position,
                   .own_first = first_new,
                   .table = static_cast<int>(tables.size()),
                   .own = static_cast<int>(own.size())});
  for (int b = 0; b < (quantises ? end / n : BlocksOf(end, n)); ++b) {
    const DeviceBlock block = port.BlockAt(b);
    if (block.bytes.empty()) {
      tables.push_back(0);
      continue;
    }
    tables.push_back(kv_.Bind(block, /*upload=*/b * n < n_before));
    if (b >= first_new) kv_.Written(block);
  }
  if (!quantises) return;
  for (int b = first_new; b < BlocksOf(end, n); ++b) {
    const DeviceBlock block = port.FloatsAt(b);
    if (block.bytes.empty()) {
      const auto inner = static_cast<std::uint64_t>(inner_of_.at(part.kv) + b -
                                                    BlocksOf(n_before, n));
      own.push_back((inner_.at() + inner * inner_bytes_) | gpu::kOneLayer);
    } else {
      own.push_back(kv_.Bind(block, /*upload=*/b * n < n_before));
      kv_.Written(block);
    }
    if ((b + 1) * n <= end) {
      sealed.push_back(index);
      sealed.push_back(b);
    }
  }
}

void StepData::PutBlocks(const StepBatch& batch) {
  std::vector<gpu::StepPart> parts;
  std::vector<int> part_of_row(static_cast<std::size_t>(batch.n_rows()));
  std::vector<std::uint64_t> tables, own;
  std::vector<int> sealed;
  for (const PartRows& part : batch.parts) {
    std::fill_n(part_of_row.begin() + part.first_row, part.n_rows,
                static_cast<int>(parts.size()));
    PutPart(part, parts, tables, own, sealed);
  }
  kv_step_.parts = Put(std::span<const gpu::StepPart>(parts));
  kv_step_.part_of_row = Put(std::span<const int>(part_of_row));
  kv_step_.tables = Put(std::span<const std::uint64_t>(tables), kTableAlign);
  kv_step_.own = Put(std::span<const std::uint64_t>(own));
  kv_step_.block_tokens = batch.parts[0].kv->block_tokens();
  kv_step_.quantises = batch.parts[0].kv->quantises() ? 1 : 0;
  sealed_ = Put(std::span<const int>(sealed));
  n_sealed_ = static_cast<int>(sealed.size() / 2);
}

void StepData::PutTasks(const StepBatch& batch) {
  tasks_.clear();
  for (const LayerPlan& layer : layers_) {
    const int positions = ShapeOf(layer).positions();
    if (tasks_.contains(positions)) continue;
    std::vector<gpu::RowTask> tasks;
    for (std::size_t i = 0; i < batch.parts.size(); ++i) {
      const PartRows& part = batch.parts[i];
      const int n = part.kv->block_tokens();
      for (int t = 0; t < part.n_rows;) {
        int end = std::min(part.n_rows, t + positions);
        if (part.kv->quantises()) {
          // Rows of one block see it as it was written.
          const int block_end = ((part.first_position + t) / n + 1) * n;
          end = std::min(end, block_end - part.first_position);
        }
        tasks.push_back({static_cast<int>(i), t, end});
        t = end;
      }
    }
    // The late rows see the most tokens: start with them.
    std::reverse(tasks.begin(), tasks.end());
    tasks_[positions] = {Put(std::span<const gpu::RowTask>(tasks)),
                         static_cast<int>(tasks.size())};
  }
}

void StepData::Begin(const StepBatch& batch) {
  batch_ = &batch;
  blob_.clear();
  PutBlocks(batch);
  PutRopes(batch);
  PutTasks(batch);
  device_.Upload(sent_.at(), blob_);
}

// --- Attention
// -----------------------------------------------------------------

bool StepData::TurnsSinkQueries(const LayerPlan& layer) const {
  const RopeConfig& rope =
      layer.rope == RopeUse::kLocal ? config_.local_rope : config_.rope;
  if (layer.rope == RopeUse::kNone || rope.rotary_dim == 0 ||
      layer.sight.sink_tokens == 0) {
    return false;
  }
  return std::any_of(batch_->positions.begin(), batch_->positions.end(),
                     [&](int p) { return layer.sight.SinkPosition(p) != p; });
}

AttendShape StepData::ShapeOf(const LayerPlan& layer) const {
  AttendShape shape;
  const int most = layer.group();
  const bool one_row =
      std::all_of(batch_->parts.begin(), batch_->parts.end(),
                  [](const PartRows& part) { return part.n_rows == 1; });
  const int n = batch_->parts[0].kv->block_tokens();
  const int segment = SegmentTokens(n), tiles = segment / n;
  const int passes = tiles * (layer.sight.sink_tokens > 0 ? 2 : 1);
  int rows = kRowsMax;
  while (rows > 1 && gpu::AttendRingAt(rows, layer.head_dim, segment, tiles,
                                       passes) > gpu::kSharedBytesPerBlock) {
    rows /= 2;
  }
  for (int group = 1; group <= std::min(most, rows); ++group) {
    if (most % group == 0) shape.group = group;
  }
  shape.shares = most / shape.group;
  shape.rows = rows;
  // Rows that are not there cost time, too.
  while (one_row && shape.rows / 2 >= shape.group) shape.rows /= 2;
  return shape;
}

StepData::Tasks StepData::TasksOf(const LayerPlan& layer) const {
  return tasks_.at(ShapeOf(layer).positions());
}

int StepData::SegmentsMax(const LayerPlan& layer) const {
  int most = 0;
  for (const PartRows& part : batch_->parts) {
    const int n = SegmentTokens(part.kv->block_tokens());
    const int last = (part.first_position + part.n_rows - 1) / n;
    const int window = layer.sight.window;
    const int first =
        window > 0 ? std::max(0, part.first_position - window + 1) / n : 0;
    const int sinks = std::min((layer.sight.sink_tokens + n - 1) / n, last);
    most = std::max(most, last + 1 - first + sinks);
  }
  return most;
}

}  // namespace hearth
