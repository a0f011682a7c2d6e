// Weights of dense networks, routers and experts.
#include <utility>

#include "formats/assemble/assembler.h"

namespace hearth {
namespace {

std::uint64_t U(std::int64_t n) { return static_cast<std::uint64_t>(n); }

}  // namespace

Result<MlpWeights> Assembler::Dense(int i) const {
  const std::int64_t d = config.d_model;
  const std::int64_t width = config.MlpWidth(i);
  MlpWeights mlp;
  if (plan.fused_gate_up) {
    HEARTH_ASSIGN(mlp.gate_up,
                  LinearLayer(Role::kGateUp, i, 2 * width, d, plan.mlp_bias));
    mlp.interleaved = plan.interleaved_gate_up;
  } else {
    if (IsGated(config.mlp)) {
      HEARTH_ASSIGN(mlp.gate,
                    LinearLayer(Role::kGate, i, width, d, plan.mlp_bias));
    }
    HEARTH_ASSIGN(mlp.up, LinearLayer(Role::kUp, i, width, d, plan.mlp_bias));
  }
  HEARTH_ASSIGN(mlp.down, LinearLayer(Role::kDown, i, d, width, plan.mlp_bias));
  return mlp;
}

// One matrix of each expert, from a tensor each or from one for all.
Result<std::vector<Linear>> Assembler::ExpertLayers(Role role, int layer,
                                                    std::int64_t n_out,
                                                    std::int64_t n_in) const {
  std::vector<Linear> out;
  if (NamesEachExpert(names, role)) {
    for (int e = 0; e < config.n_experts; ++e) {
      HEARTH_ASSIGN(Linear linear,
                    LinearLayer(role, layer, n_out, n_in, plan.mlp_bias, e));
      out.push_back(std::move(linear));
    }
    return out;
  }
  HEARTH_ASSIGN(const std::vector<WeightMatrix> matrices,
                tensors.Stack(WeightName(names, role, layer), config.n_experts,
                              n_out, n_in, plan.experts_transposed));
  std::vector<float> bias;
  if (plan.mlp_bias) {
    const std::uint64_t shape[] = {U(config.n_experts), U(n_out)};
    HEARTH_ASSIGN(bias, tensors.Floats(BiasName(names, role, layer), shape));
  }
  for (std::size_t e = 0; e < matrices.size(); ++e) {
    out.push_back({matrices[e], {}});
    if (plan.mlp_bias) {
      const auto first = bias.begin() + static_cast<std::int64_t>(e) * n_out;
      out.back().bias.assign(first, first + n_out);
    }
  }
  return out;
}

Result<std::vector<MlpWeights>> Assembler::Experts(int i) const {
  const std::int64_t d = config.d_model;
  const std::int64_t width = config.d_expert;
  std::vector<Linear> gate, up, gate_up;
  if (plan.fused_expert_gate_up) {
    HEARTH_ASSIGN(gate_up, ExpertLayers(Role::kExpertGateUp, i, 2 * width, d));
  } else {
    if (IsGated(config.mlp)) {
      HEARTH_ASSIGN(gate, ExpertLayers(Role::kExpertGate, i, width, d));
    }
    HEARTH_ASSIGN(up, ExpertLayers(Role::kExpertUp, i, width, d));
  }
  HEARTH_ASSIGN(std::vector<Linear> down,
                ExpertLayers(Role::kExpertDown, i, d, width));
  std::vector<MlpWeights> experts(down.size());
  for (std::size_t e = 0; e < experts.size(); ++e) {
    if (plan.fused_expert_gate_up) {
      experts[e].gate_up = std::move(gate_up[e]);
      experts[e].interleaved = plan.interleaved_gate_up;
    } else {
      if (IsGated(config.mlp)) experts[e].gate = std::move(gate[e]);
      experts[e].up = std::move(up[e]);
    }
    experts[e].down = std::move(down[e]);
  }
  return experts;
}

// The router is small and never transposed.
Result<void> Assembler::AddRouter(int i, LayerWeights& w) const {
  HEARTH_ASSIGN(w.router.w, tensors.Linear(WeightName(names, Role::kRouter, i),
                                           config.n_experts, config.d_model));
  if (plan.router_bias) {
    const std::uint64_t shape[] = {U(config.n_experts)};
    HEARTH_ASSIGN(w.router.bias,
                  tensors.Floats(BiasName(names, Role::kRouter, i), shape));
  }
  if (config.router_rules.bias) {
    HEARTH_ASSIGN(w.router_bias,
                  Vector(Role::kRouterBias, i, config.n_experts));
  }
  if (!config.dense_beside_experts) return {};
  HEARTH_ASSIGN(w.router_scale, Vector(Role::kRouterScale, i, config.d_model));
  HEARTH_ASSIGN(w.expert_scales,
                Vector(Role::kExpertScales, i, config.n_experts));
  HEARTH_ASSIGN(w.dense_post_norm, Norm(Role::kDensePostNorm, i));
  HEARTH_ASSIGN(w.experts_norm, Norm(Role::kExpertsNorm, i));
  HEARTH_ASSIGN(w.experts_post_norm, Norm(Role::kExpertsPostNorm, i));
  return {};
}

Result<MlpWeights> Assembler::SharedExpert(int i) const {
  const std::int64_t d = config.d_model;
  const std::int64_t width = config.d_shared_expert;
  MlpWeights mlp;
  if (plan.fused_shared_gate_up) {
    HEARTH_ASSIGN(mlp.gate_up,
                  LinearLayer(Role::kSharedGateUp, i, 2 * width, d, false));
  } else {
    if (IsGated(config.mlp)) {
      HEARTH_ASSIGN(mlp.gate,
                    LinearLayer(Role::kSharedGate, i, width, d, false));
    }
    HEARTH_ASSIGN(mlp.up, LinearLayer(Role::kSharedUp, i, width, d, false));
  }
  HEARTH_ASSIGN(mlp.down, LinearLayer(Role::kSharedDown, i, d, width, false));
  return mlp;
}

Result<void> Assembler::AddExperts(int i, LayerWeights& w) const {
  HEARTH_TRY(AddRouter(i, w));
  HEARTH_ASSIGN(w.experts, Experts(i));
  if (config.d_shared_expert == 0) return {};
  HEARTH_ASSIGN(w.shared_expert, SharedExpert(i));
  if (config.shared_expert_gate) {
    HEARTH_ASSIGN(w.shared_expert_gate, LinearLayer(Role::kSharedExpertGate, i,
                                                    1, config.d_model, false));
  }
  return {};
}

}  // namespace hearth
