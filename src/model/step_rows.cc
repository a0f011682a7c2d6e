#include "model/step_rows.h"

#include <algorithm>

namespace hearth {

StepRows PlanRows(const ModelConfig& config, std::span<const LayerPlan> layers,
                  int n_rows) {
  StepRows rows;
  rows.x.width = rows.normed.width = rows.delta.width = config.d_model;
  for (const LayerPlan& layer : layers) {
    rows.qkv.width = std::max(rows.qkv.width, layer.qkv_dim());
    rows.attended.width = std::max(rows.attended.width, layer.q_dim());
  }
  const bool sinks = std::any_of(
      layers.begin(), layers.end(),
      [](const LayerPlan& layer) { return layer.sight.sink_tokens > 0; });
  if (sinks) rows.sink_q.width = rows.attended.width;
  if (config.attention_gate) rows.gate.width = rows.attended.width;
  rows.layer_input.width = std::int64_t{config.n_layers} * config.d_layer_input;
  for (int slot = 0; Rows * matrix : rows.All()) matrix->slot = slot++;
  rows.Narrow(n_rows);
  return rows;
}

}  // namespace hearth
