#include "model/cpu/weight_shapes.h"

#include <algorithm>

namespace hearth {

namespace {

void AddShape(const WeightMatrix& w, std::vector<WeightMatrix>& shapes) {
  const bool known =
      std::any_of(shapes.begin(), shapes.end(), [&](const WeightMatrix& s) {
        return s.dtype == w.dtype && s.layout == w.layout && s.n_in == w.n_in &&
               s.n_out == w.n_out;
      });
  if (!known) shapes.push_back(w);
}

}  // namespace

WeightShapes DistinctShapes(const Weights& weights) {
  WeightShapes shapes;
  const auto add = [&](const Linear& linear) {
    if (linear.empty()) return;
    AddShape(linear.w, shapes.matrices);
    std::int64_t ranks = 0;
    for (const LowRank& low_rank : linear.low_ranks) {
      AddShape(low_rank.down, shapes.matrices);
      AddShape(low_rank.up, shapes.matrices);
      ranks += low_rank.down.n_out;
    }
    LowRanks& most = shapes.low_ranks;
    most.n = std::max(most.n, std::ssize(linear.low_ranks));
    most.ranks = std::max(most.ranks, ranks);
  };
  const auto add_mlp = [&](const MlpWeights& mlp) {
    for (const Linear* linear : {&mlp.gate, &mlp.up, &mlp.gate_up, &mlp.down}) {
      add(*linear);
    }
  };
  for (const LayerWeights& layer : weights.layers) {
    for (const Linear* linear :
         {&layer.q, &layer.k, &layer.v, &layer.qkv, &layer.o, &layer.router,
          &layer.shared_expert_gate, &layer.short_conv.in,
          &layer.short_conv.out, &layer.mamba2.in, &layer.mamba2.out,
          &layer.latent.q_down, &layer.latent.kv_down, &layer.input.gate,
          &layer.input.up}) {
      add(*linear);
    }
    const DeltaNetWeights& net = layer.delta_net;
    for (const Linear* linear : {&net.qkv, &net.gate, &net.qkv_gate, &net.rate,
                                 &net.decay, &net.rate_decay, &net.out}) {
      add(*linear);
    }
    add_mlp(layer.mlp);
    add_mlp(layer.shared_expert);
    for (const MlpWeights& expert : layer.experts) add_mlp(expert);
  }
  add(weights.head);
  add(weights.layer_projection);
  return shapes;
}

}  // namespace hearth
