// Rotary positions of a step's queries and keys, and the queries as the sink
// tokens meet them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/kernels.h"
#include "model/cpu/rope_table.h"
#include "model/layer_plan.h"

namespace hearth {

class Rotation {
 public:
  // Both must outlive the object.
  Rotation(const ModelConfig& config, ThreadPool& pool);

  // From here on rows are at these positions. They outlive the step.
  void Begin(std::span<const int> positions);
  // qkv: [n_rows][LayerPlan::qkv_dim], queries and keys turned in place;
  // sink_q: [n_rows][q_dim], written when TurnsSinkQueries.
  void Run(const LayerPlan& layer, int n_rows, float* qkv, float* sink_q);
  // Whether a row's queries meet the sink tokens at another position than its
  // own. While no token is out of sight, none do.
  bool TurnsSinkQueries(const LayerPlan& layer) const;

 private:
  const RopeConfig& RopeOf(const LayerPlan& layer) const {
    return layer.rope == RopeUse::kLocal ? config_.local_rope : config_.rope;
  }
  bool Rotates(const LayerPlan& layer) const {
    return layer.rope != RopeUse::kNone && RopeOf(layer).rotary_dim > 0;
  }
  void RotateHeads(const LayerPlan& layer, const RopeConfig& rope,
                   const RopeTable& table, std::int64_t row, float* heads,
                   std::int64_t n) const;
  // Queries times what their position makes them grow by.
  void Grow(const LayerPlan& layer, std::int64_t row, float* queries) const;
  // From queries that are not rotated yet.
  void RotateSinkQueries(const LayerPlan& layer, const RopeConfig& rope,
                         int n_rows, const float* qkv, float* sink_q);

  const ModelConfig& config_;
  ThreadPool& pool_;
  const Kernels& kernels_;
  std::span<const int> positions_;
  RopeTable rope_, local_rope_, sink_rope_;
};

}  // namespace hearth
