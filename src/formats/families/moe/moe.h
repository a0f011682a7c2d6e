// What the families with a dense lead and a sigmoid router share.
#pragma once

#include "formats/families.h"

namespace hearth {

// `base` with GGUF's names of a shared expert and of the choice's bias.
constexpr NameScheme WithGgufMoe(NameScheme base) {
  return WithNames(base, {{Role::kSharedGate, "blk.{}.ffn_gate_shexp"},
                          {Role::kSharedUp, "blk.{}.ffn_up_shexp"},
                          {Role::kSharedDown, "blk.{}.ffn_down_shexp"},
                          {Role::kExpertGateUp, "blk.{}.ffn_gate_up_exps"},
                          {Role::kRouterBias, "blk.{}.exp_probs_b.bias#"}});
}
constexpr NameScheme WithHfMoe(NameScheme base) {
  return WithNames(
      base,
      {{Role::kSharedGate, "model.layers.{}.mlp.shared_experts.gate_proj"},
       {Role::kSharedUp, "model.layers.{}.mlp.shared_experts.up_proj"},
       {Role::kSharedDown, "model.layers.{}.mlp.shared_experts.down_proj"},
       {Role::kRouterBias,
        "model.layers.{}.mlp.gate.e_score_correction_bias#"}});
}

// All layers but the first n have experts; how many those are.
void SetDenseLead(ModelConfig& config, int n);
int DenseLeadOf(const ModelConfig& config);

// Experts in all layers but the first few, and a shared one of some experts'
// width: first_k_dense_replace, n_routed_experts and their kin.
Result<void> HfLeadAndExperts(const HfInput& in);
void WriteHfLeadAndExperts(const ModelConfig& config, Json& json);
// leading_dense_block_count, expert_count and their kin. `names`: of the
// family.
Result<void> GgufLeadAndExperts(const GgufInput& in, const NameScheme& names);
void WriteGgufLeadAndExperts(const ModelConfig& config,
                             const GgufKeyWriter& key);
// Some files have each expert's matrices, others one tensor of all.
void AdaptHfExperts(const TensorSet& tensors, WeightPlan& plan,
                    NameScheme& names);

inline constexpr std::string_view kMoeGgufKeys[] = {
    "expert_count", "expert_shared_count", "expert_weights_scale"};

}  // namespace hearth
