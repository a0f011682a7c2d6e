#include "model/cpu/weight_shapes.h"

#include <algorithm>

namespace hearth {

std::vector<WeightMatrix> DistinctShapes(const Weights& weights) {
  std::vector<WeightMatrix> shapes;
  const auto add = [&](const Linear& linear) {
    if (linear.empty()) return;
    const WeightMatrix& w = linear.w;
    const bool known =
        std::any_of(shapes.begin(), shapes.end(), [&](const WeightMatrix& s) {
          return s.dtype == w.dtype && s.layout == w.layout &&
                 s.n_in == w.n_in && s.n_out == w.n_out;
        });
    if (!known) shapes.push_back(w);
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
