#include "model/cpu/rotation.h"

#include <algorithm>
#include <cmath>

namespace hearth {

Rotation::Rotation(const ModelConfig& config, ThreadPool& pool)
    : config_(config), pool_(pool), kernels_(ActiveKernels()) {}

void Rotation::Begin(std::span<const int> positions) {
  positions_ = positions;
  if (config_.rope.rotary_dim > 0) rope_.Compute(config_.rope, positions);
  if (config_.local_rope.rotary_dim > 0) {
    local_rope_.Compute(config_.local_rope, positions);
  }
}

bool Rotation::TurnsSinkQueries(const LayerPlan& layer) const {
  if (!Rotates(layer) || layer.sight.sink_tokens == 0) return false;
  return std::any_of(positions_.begin(), positions_.end(), [&](int position) {
    return layer.sight.SinkPosition(position) != position;
  });
}

void Rotation::Run(const LayerPlan& layer, int n_rows, float* qkv,
                   float* sink_q) {
  if (!Rotates(layer)) return;
  const RopeConfig& rope = RopeOf(layer);
  if (TurnsSinkQueries(layer)) {
    RotateSinkQueries(layer, rope, n_rows, qkv, sink_q);
  }
  const RopeTable& table = layer.rope == RopeUse::kLocal ? local_rope_ : rope_;
  const std::int64_t n_rotated =
      layer.q_dim() + (layer.owns_kv ? layer.kv_dim() : 0);
  pool_.ParallelFor(n_rows, [&](std::int64_t t, int) {
    float* row = qkv + t * layer.qkv_dim();
    RotateHeads(layer, rope, table, t, row, n_rotated);
    Grow(layer, t, row);
  });
}

void Rotation::RotateHeads(const LayerPlan& layer, const RopeConfig& rope,
                           const RopeTable& table, std::int64_t row,
                           float* heads, std::int64_t n) const {
  for (float* head = heads; head < heads + n; head += layer.head_dim) {
    kernels_.rope(head + layer.rope_first, rope.rotary_dim, table.cos(row),
                  table.sin(row), rope.interleaved);
  }
}

void Rotation::Grow(const LayerPlan& layer, std::int64_t row,
                    float* queries) const {
  const QueryGrowth& growth = config_.query_growth;
  if (growth.beta == 0) return;
  // In double, so that the rounded factor is the same in every C library.
  const int spans = positions_[static_cast<std::size_t>(row)] / growth.tokens;
  const auto factor = static_cast<float>(
      1 + double{growth.beta} * std::log1p(static_cast<double>(spans)));
  for (std::int64_t i = 0; i < layer.q_dim(); ++i) queries[i] *= factor;
}

void Rotation::RotateSinkQueries(const LayerPlan& layer, const RopeConfig& rope,
                                 int n_rows, const float* qkv, float* sink_q) {
  std::vector<int> positions;
  for (const int position : positions_) {
    positions.push_back(layer.sight.SinkPosition(position));
  }
  sink_rope_.Compute(rope, positions);
  pool_.ParallelFor(n_rows, [&](std::int64_t t, int) {
    float* row = sink_q + t * layer.q_dim();
    std::copy_n(qkv + t * layer.qkv_dim(), layer.q_dim(), row);
    RotateHeads(layer, rope, sink_rope_, t, row, layer.q_dim());
    Grow(layer, t, row);
  });
}

}  // namespace hearth
