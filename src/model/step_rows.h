// The matrices that a forward step works in, whatever device they lie on.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "model/layer_plan.h"

namespace hearth {

// A handle of a matrix [n][width] of floats on the device, one row for each row
// of the batch. Valid until the next Reserve.
struct Rows {
  int slot = -1;
  int n = 0;
  std::int64_t width = 0;
};

// The matrices of one step.
struct StepRows {
  static constexpr int kCount = 8;

  Rows x;         // [d_model], the residual stream
  Rows normed;    // [d_model], what a sublayer reads
  Rows delta;     // [d_model], what a sublayer adds
  Rows qkv;       // queries, keys, values of one layer
  Rows sink_q;    // its queries as the sink tokens meet them
  Rows gate;      // its heads' gates, before the sigmoid
  Rows attended;  // its heads' results
  // [n_layers * d_layer_input], each layer's own input; width 0 without.
  Rows layer_input;

  // All of them, by their slots.
  std::array<Rows*, kCount> All() {
    return {&x, &normed, &delta, &qkv, &sink_q, &gate, &attended, &layer_input};
  }
  // Keeps the first n rows of each.
  void Narrow(int n) {
    for (Rows* rows : All()) rows->n = n;
  }
};

// The matrices of a step of n_rows rows, as wide as the layer that takes most;
// of width 0 what the model does not have.
StepRows PlanRows(const ModelConfig& config, std::span<const LayerPlan> layers,
                  int n_rows);

}  // namespace hearth
