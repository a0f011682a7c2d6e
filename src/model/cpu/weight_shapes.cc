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
         {&layer.q, &layer.k, &layer.v, &layer.qkv, &layer.o, &layer.router}) {
      add(*linear);
    }
    add_mlp(layer.mlp);
    for (const MlpWeights& expert : layer.experts) add_mlp(expert);
  }
  add(weights.head);
  return shapes;
}

}  // namespace hearth
