#include "model/layer_plan.h"

namespace hearth {

std::vector<LayerPlan> PlanLayers(const LoadedModel& model) {
  const ModelConfig& config = model.config;
  std::vector<LayerPlan> plans;
  for (int i = 0; i < config.n_layers; ++i) {
    plans.push_back(
        {.index = i,
         .weights = &model.weights.layers[static_cast<std::size_t>(i)],
         .mixer = config.KindOf(i).mixer,
         .first_state = config.FirstStateOf(i),
         .kv_layer = config.KvLayerOf(i),
         .owns_kv = config.OwnsKv(i),
         .n_heads = config.n_heads,
         .n_kv_heads = config.KvHeads(i),
         .head_dim = config.HeadDim(i),
         .value_dim = config.ValueDim(i),
         .rope = config.KindOf(i).rope,
         .rope_first = config.latent.kv_rank,
         .sight = config.SightOf(i),
         .has_dense = config.HasDense(i),
         .has_experts = config.HasExperts(i),
         .mlp_width = config.MlpWidth(i)});
  }
  return plans;
}

}  // namespace hearth
