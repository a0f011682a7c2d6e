#include "formats/families/moe/moe.h"

#include "formats/families/settings.h"

namespace hearth {
namespace {

// Experts' widths that one shared expert has.
Result<void> SetShared(int n, const std::string& label, ModelConfig& c) {
  if (n > 64 || c.d_expert > 1 << 24) {
    return {Code::kCorrupt, label + ": the shared experts are impossible"};
  }
  c.d_shared_expert = n * c.d_expert;
  c.shared_expert_gate = false;
  return {};
}

int SharedOf(const ModelConfig& c) {
  return c.d_expert > 0 ? c.d_shared_expert / c.d_expert : 0;
}

}  // namespace

void SetDenseLead(ModelConfig& c, int n) {
  if (n == 0) return;
  if (c.layer_kinds.empty()) SetLayerKinds(c, [](LayerKind&, int) {});
  for (int i = 0; i < static_cast<int>(c.layer_kinds.size()); ++i) {
    if (i < n) c.layer_kinds[static_cast<std::size_t>(i)].ffn = Ffn::kDense;
  }
}

int DenseLeadOf(const ModelConfig& c) {
  int n = 0;
  while (n < c.n_layers && !c.HasExperts(n)) ++n;
  return n;
}

Result<void> HfLeadAndExperts(const HfInput& in) {
  ModelConfig& c = in.config;
  HEARTH_ASSIGN(c.n_experts, HfSize(in, "n_routed_experts"));
  HEARTH_ASSIGN(c.n_experts_used, HfSize(in, "num_experts_per_tok"));
  HEARTH_ASSIGN(c.d_expert, HfSize(in, "moe_intermediate_size"));
  HEARTH_ASSIGN(const int shared, HfSize(in, "n_shared_experts", 0));
  HEARTH_TRY(SetShared(shared, in.label, c));
  HEARTH_ASSIGN(const int lead, HfSize(in, "first_k_dense_replace", 0));
  SetDenseLead(c, lead);
  HEARTH_ASSIGN(const int every, HfSize(in, "moe_layer_freq", 1));
  if (every != 1) {
    return UnsupportedSetting(in.label, "moe_layer_freq other than 1");
  }
  return HfRouterRules(in);
}

void WriteHfLeadAndExperts(const ModelConfig& c, Json& json) {
  json["n_routed_experts"] = c.n_experts;
  json["num_experts_per_tok"] = c.n_experts_used;
  json["moe_intermediate_size"] = c.d_expert;
  json["n_shared_experts"] = SharedOf(c);
  json["first_k_dense_replace"] = DenseLeadOf(c);
  WriteHfRouterRules(c, json);
}

Result<void> GgufLeadAndExperts(const GgufInput& in, const NameScheme& names) {
  ModelConfig& c = in.config;
  HEARTH_TRY(GgufDropGuessers(in));
  HEARTH_TRY(GgufExperts(in));
  HEARTH_ASSIGN(const int lead, GgufSize(in, "leading_dense_block_count", 0));
  HEARTH_ASSIGN(const int shared, GgufSize(in, "expert_shared_count", 0));
  HEARTH_TRY(SetShared(shared, in.file.label(), c));
  SetDenseLead(c, lead);
  const auto has = [&](Role role) {
    return in.tensors.Has(WeightName(names, role, lead));
  };
  in.plan.fused_expert_gate_up = has(Role::kExpertGateUp);
  c.router_rules.bias = has(Role::kRouterBias);
  return {};
}

void WriteGgufLeadAndExperts(const ModelConfig& c, const GgufKeyWriter& key) {
  key.size("leading_dense_block_count", DenseLeadOf(c));
  key.size("expert_shared_count", SharedOf(c));
  WriteGgufRouterRules(c, key);
}

void AdaptHfExperts(const TensorSet& tensors, WeightPlan& plan,
                    NameScheme& names) {
  const NameScheme fused = WithNames(
      names,
      {{Role::kExpertGateUp, "model.layers.{}.mlp.experts.gate_up_proj#"},
       {Role::kExpertDown, "model.layers.{}.mlp.experts.down_proj#"}});
  for (const SourceTensor& tensor : tensors.tensors()) {
    if (!tensor.name.ends_with(".mlp.experts.gate_up_proj")) continue;
    names = fused;
    plan.fused_expert_gate_up = true;
    return;
  }
}

}  // namespace hearth
