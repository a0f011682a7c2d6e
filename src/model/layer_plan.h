// What the operations of one layer need to know, worked out once for a model.
#pragma once

#include <cstdint>
#include <vector>

#include "model/config.h"
#include "model/weights.h"

namespace hearth {

struct LayerPlan {
  int index = 0;
  const LayerWeights* weights = nullptr;
  Mixer mixer = Mixer::kAttention;
  int first_state = 0;   // of StatePort: those of ModelConfig::StatesOf
  int kv_layer = 0;      // of KvPort: what the layer attends to
  bool owns_kv = false;  // and writes
  int n_heads = 0, n_kv_heads = 0, head_dim = 0;
  int value_dim = 0;  // 0: a head's value is the beginning of its key
  RopeUse rope = RopeUse::kMain;
  int rope_first = 0;  // of a head's numbers, the first that turns
  LayerSight sight;
  bool has_dense = true, has_experts = false;
  int mlp_width = 0;  // of the dense network

  int group() const { return n_heads / n_kv_heads; }  // query heads a KV head
  // Floats of a row: queries, keys, values, all three.
  std::int64_t q_dim() const { return std::int64_t{n_heads} * head_dim; }
  std::int64_t kv_dim() const { return std::int64_t{n_kv_heads} * head_dim; }
  std::int64_t v_dim() const { return std::int64_t{n_kv_heads} * value_dim; }
  std::int64_t qkv_dim() const { return q_dim() + kv_dim() + v_dim(); }
};

// Of every layer. `model` outlives them.
std::vector<LayerPlan> PlanLayers(const LoadedModel& model);

}  // namespace hearth
