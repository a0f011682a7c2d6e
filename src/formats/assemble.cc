#include "formats/assemble.h"

#include <cmath>
#include <utility>

#include "formats/assemble_mixers.h"

namespace hearth {
namespace {

// Beyond any model; keeps every product of two sizes within 62 bits and the
// sizes themselves within int.
constexpr int kSizeMax = 1 << 30;
constexpr int kHeadDimMax = 1 << 14;
constexpr int kLayersMax = 1 << 14;
constexpr int kExpertsMax = 1 << 12;

// What AssembleWeights needs all the time.
struct Assembler {
  const ModelConfig& config;
  const WeightPlan& plan;
  const NameScheme& names;
  TensorSet& tensors;

  Result<std::vector<float>> NormWeight(Role role, int layer,
                                        std::int64_t n) const {
    const std::uint64_t shape[] = {static_cast<std::uint64_t>(n)};
    HEARTH_ASSIGN(std::vector<float> weight,
                  tensors.Floats(WeightName(names, role, layer), shape));
    if (plan.norm_offset != 0) {
      for (float& w : weight) w += plan.norm_offset;
    }
    return weight;
  }

  Result<NormWeights> Norm(Role role, int layer) const {
    NormWeights norm;
    HEARTH_ASSIGN(norm.weight, NormWeight(role, layer, config.d_model));
    if (plan.norm_bias) {
      const std::uint64_t shape[] = {
          static_cast<std::uint64_t>(config.d_model)};
      HEARTH_ASSIGN(norm.bias,
                    tensors.Floats(BiasName(names, role, layer), shape));
    }
    return norm;
  }

  Result<Linear> LinearLayer(Role role, int layer, std::int64_t n_out,
                             std::int64_t n_in, bool with_bias,
                             int expert = 0) const {
    const std::string name = WeightName(names, role, layer, expert);
    Linear linear;
    HEARTH_ASSIGN(linear.w, plan.transposed
                                ? tensors.Transposed(name, n_out, n_in)
                                : tensors.Linear(name, n_out, n_in));
    if (with_bias) {
      const std::uint64_t shape[] = {static_cast<std::uint64_t>(n_out)};
      HEARTH_ASSIGN(
          linear.bias,
          tensors.Floats(BiasName(names, role, layer, expert), shape));
    }
    return linear;
  }

  // One matrix of each expert, from a tensor each or from one for all.
  Result<std::vector<Linear>> ExpertLayers(Role role, int layer,
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
    HEARTH_ASSIGN(
        const std::vector<WeightMatrix> matrices,
        tensors.Stack(WeightName(names, role, layer), config.n_experts, n_out,
                      n_in, plan.experts_transposed));
    std::vector<float> bias;
    if (plan.mlp_bias) {
      const std::uint64_t shape[] = {
          static_cast<std::uint64_t>(config.n_experts),
          static_cast<std::uint64_t>(n_out)};
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

  Result<void> AddAttention(int i, LayerWeights& w) const {
    const std::int64_t d = config.d_model;
    const std::int64_t head_dim = config.HeadDim(i);
    const std::int64_t d_q = std::int64_t{config.n_heads} * head_dim;
    const std::int64_t d_kv = std::int64_t{config.KvHeads(i)} * head_dim;
    if (!config.OwnsKv(i)) {
      HEARTH_ASSIGN(w.q, LinearLayer(Role::kCrossQ, i, d_q, d, plan.qkv_bias));
      HEARTH_ASSIGN(w.o, LinearLayer(Role::kCrossO, i, d, d_q, plan.o_bias));
      return {};
    }
    if (plan.fused_qkv) {
      HEARTH_ASSIGN(
          w.qkv, LinearLayer(Role::kQkv, i, d_q + 2 * d_kv, d, plan.qkv_bias));
    } else {
      HEARTH_ASSIGN(
          w.q, LinearLayer(Role::kQ, i, config.attention_gate ? 2 * d_q : d_q,
                           d, plan.qkv_bias));
      HEARTH_ASSIGN(w.k, LinearLayer(Role::kK, i, d_kv, d, plan.qkv_bias));
      HEARTH_ASSIGN(w.v, LinearLayer(Role::kV, i, d_kv, d, plan.qkv_bias));
    }
    if (config.qk_norm != QkNorm::kNone) {
      const bool whole = config.qk_norm == QkNorm::kWhole;
      HEARTH_ASSIGN(w.q_norm,
                    NormWeight(Role::kQNorm, i, whole ? d_q : head_dim));
      HEARTH_ASSIGN(w.k_norm,
                    NormWeight(Role::kKNorm, i, whole ? d_kv : head_dim));
    }
    if (config.attention_sinks) {
      const std::uint64_t shape[] = {
          static_cast<std::uint64_t>(config.n_heads)};
      HEARTH_ASSIGN(w.sinks,
                    tensors.Floats(WeightName(names, Role::kSinks, i), shape));
    }
    HEARTH_ASSIGN(w.o, LinearLayer(Role::kO, i, d, d_q, plan.o_bias));
    return {};
  }

  Result<MlpWeights> Dense(int i) const {
    const std::int64_t d = config.d_model;
    const std::int64_t d_mlp = config.d_mlp;
    MlpWeights mlp;
    if (plan.fused_gate_up) {
      HEARTH_ASSIGN(mlp.gate_up,
                    LinearLayer(Role::kGateUp, i, 2 * d_mlp, d, plan.mlp_bias));
      mlp.interleaved = plan.interleaved_gate_up;
    } else {
      if (IsGated(config.mlp)) {
        HEARTH_ASSIGN(mlp.gate,
                      LinearLayer(Role::kGate, i, d_mlp, d, plan.mlp_bias));
      }
      HEARTH_ASSIGN(mlp.up, LinearLayer(Role::kUp, i, d_mlp, d, plan.mlp_bias));
    }
    HEARTH_ASSIGN(mlp.down,
                  LinearLayer(Role::kDown, i, d, d_mlp, plan.mlp_bias));
    return mlp;
  }

  Result<std::vector<MlpWeights>> Experts(int i) const {
    const std::int64_t d = config.d_model;
    const std::int64_t width = config.d_expert;
    std::vector<Linear> gate, up, gate_up;
    if (plan.fused_gate_up) {
      HEARTH_ASSIGN(gate_up,
                    ExpertLayers(Role::kExpertGateUp, i, 2 * width, d));
    } else {
      HEARTH_ASSIGN(gate, ExpertLayers(Role::kExpertGate, i, width, d));
      HEARTH_ASSIGN(up, ExpertLayers(Role::kExpertUp, i, width, d));
    }
    HEARTH_ASSIGN(std::vector<Linear> down,
                  ExpertLayers(Role::kExpertDown, i, d, width));
    std::vector<MlpWeights> experts(down.size());
    for (std::size_t e = 0; e < experts.size(); ++e) {
      if (plan.fused_gate_up) {
        experts[e].gate_up = std::move(gate_up[e]);
        experts[e].interleaved = plan.interleaved_gate_up;
      } else {
        experts[e].gate = std::move(gate[e]);
        experts[e].up = std::move(up[e]);
      }
      experts[e].down = std::move(down[e]);
    }
    return experts;
  }

  Result<void> AddMixer(int i, LayerWeights& w) const {
    switch (config.KindOf(i).mixer) {
      case Mixer::kShortConv: {
        HEARTH_ASSIGN(w.short_conv,
                      AssembleShortConv(config, names, i, tensors));
        return {};
      }
      case Mixer::kDeltaNet: {
        HEARTH_ASSIGN(w.delta_net,
                      AssembleDeltaNet(config, plan, names, i, tensors));
        return {};
      }
      case Mixer::kAttention:
        break;
    }
    return AddAttention(i, w);
  }

  Result<void> AddSharedExpert(int i, LayerWeights& w) const {
    const std::int64_t d = config.d_model;
    const std::int64_t width = config.d_shared_expert;
    HEARTH_ASSIGN(w.shared_expert.gate,
                  LinearLayer(Role::kSharedGate, i, width, d, false));
    HEARTH_ASSIGN(w.shared_expert.up,
                  LinearLayer(Role::kSharedUp, i, width, d, false));
    HEARTH_ASSIGN(w.shared_expert.down,
                  LinearLayer(Role::kSharedDown, i, d, width, false));
    HEARTH_ASSIGN(w.shared_expert_gate,
                  LinearLayer(Role::kSharedExpertGate, i, 1, d, false));
    return {};
  }

  Result<LayerWeights> Layer(int i) const {
    const bool before = config.norm_placement != NormPlacement::kAfter;
    const bool after = config.norm_placement != NormPlacement::kBefore;
    LayerWeights w;
    if (before) {
      HEARTH_ASSIGN(w.attention_norm, Norm(Role::kAttentionNorm, i));
    }
    HEARTH_TRY(AddMixer(i, w));
    if (after) {
      HEARTH_ASSIGN(w.post_attention_norm, Norm(Role::kPostAttentionNorm, i));
    }
    if (before) {
      HEARTH_ASSIGN(w.mlp_norm, Norm(Role::kMlpNorm, i));
    }
    if (config.n_experts > 0) {
      // The router is small and never transposed.
      HEARTH_ASSIGN(w.router.w,
                    tensors.Linear(WeightName(names, Role::kRouter, i),
                                   config.n_experts, config.d_model));
      if (plan.router_bias) {
        const std::uint64_t shape[] = {
            static_cast<std::uint64_t>(config.n_experts)};
        HEARTH_ASSIGN(w.router.bias,
                      tensors.Floats(BiasName(names, Role::kRouter, i), shape));
      }
      HEARTH_ASSIGN(w.experts, Experts(i));
      if (config.d_shared_expert > 0) HEARTH_TRY(AddSharedExpert(i, w));
    } else {
      HEARTH_ASSIGN(w.mlp, Dense(i));
    }
    if (after) {
      HEARTH_ASSIGN(w.post_mlp_norm, Norm(Role::kPostMlpNorm, i));
    }
    return w;
  }
};

Error Bad(const std::string& label, const std::string& what) {
  return {Code::kCorrupt, label + ": " + what};
}

}  // namespace

Result<void> CheckConfig(const ModelConfig& c, const std::string& label) {
  const struct {
    const char* name;
    int value, max;
  } sizes[] = {{"layer count", c.n_layers, kLayersMax},
               {"model width", c.d_model, kSizeMax},
               {"head count", c.n_heads, kHeadDimMax},
               {"KV head count", c.n_kv_heads, kHeadDimMax},
               {"head size", c.head_dim, kHeadDimMax},
               {"MLP width", c.d_mlp, kSizeMax},
               {"vocabulary size", c.vocab_size, kSizeMax},
               {"context length", c.context_length, kSizeMax}};
  for (const auto& size : sizes) {
    if (size.value < 1 || size.value > size.max) {
      return Bad(label, std::string(size.name) + " " +
                            std::to_string(size.value) + " is not in 1 to " +
                            std::to_string(size.max));
    }
  }
  if (c.n_heads % c.n_kv_heads != 0) {
    return Bad(label, std::to_string(c.n_heads) + " heads cannot share " +
                          std::to_string(c.n_kv_heads) + " KV heads evenly");
  }
  if (c.n_experts < 0 || c.n_experts > kExpertsMax ||
      (c.n_experts > 0 &&
       (c.n_experts_used < 1 || c.n_experts_used > c.n_experts ||
        c.d_expert < 1 || c.d_expert > kSizeMax))) {
    return Bad(label, std::to_string(c.n_experts_used) + " of " +
                          std::to_string(c.n_experts) + " experts of width " +
                          std::to_string(c.d_expert) + " are no usable model");
  }
  if (!c.layer_kinds.empty() &&
      c.layer_kinds.size() != static_cast<std::size_t>(c.n_layers)) {
    return Bad(label, "the list of layer kinds has " +
                          std::to_string(c.layer_kinds.size()) +
                          " entries for " + std::to_string(c.n_layers) +
                          " layers");
  }
  for (const LayerKind& kind : c.layer_kinds) {
    if (kind.window < 0) return Bad(label, "a window is negative");
  }
  HEARTH_TRY(CheckMixers(c, label));
  if (!(c.norm_eps >= 0.0f && c.norm_eps < 1.0f)) {
    return Bad(label, "norm epsilon is not in 0 to 1");
  }
  if (!std::isfinite(c.attention_scale) || c.attention_scale <= 0.0f) {
    return Bad(label, "attention scale is not a positive number");
  }
  for (const float scale :
       {c.embedding_scale, c.residual_scale, c.logit_scale}) {
    if (!std::isfinite(scale) || scale <= 0.0f) {
      return Bad(label, "a scale is not a positive number");
    }
  }
  for (const float cap : {c.attention_softcap, c.logit_softcap}) {
    if (!std::isfinite(cap) || cap < 0.0f) {
      return Bad(label, "a soft cap is not a number of at least 0");
    }
  }
  if (c.rope.rotary_dim < 0 || c.rope.rotary_dim > c.head_dim ||
      c.rope.rotary_dim % 2 != 0) {
    return Bad(label, "rotary size " + std::to_string(c.rope.rotary_dim) +
                          " is not an even number up to the head size " +
                          std::to_string(c.head_dim));
  }
  return {};
}

std::string NameFromShape(const ModelConfig& config) {
  return config.architecture + "-" + std::to_string(config.n_layers) + "l-" +
         std::to_string(config.d_model) + "d";
}

Result<Weights> AssembleWeights(const ModelConfig& config,
                                const WeightPlan& plan, const NameScheme& names,
                                TensorSet& tensors) {
  const Assembler assembler{config, plan, names, tensors};
  Weights w;
  HEARTH_ASSIGN(w.token_embedding,
                tensors.Embedding(WeightName(names, Role::kTokenEmbedding),
                                  config.vocab_size, config.d_model));
  if (config.learned_positions) {
    const std::uint64_t shape[] = {
        static_cast<std::uint64_t>(config.context_length),
        static_cast<std::uint64_t>(config.d_model)};
    HEARTH_ASSIGN(
        w.position_embedding,
        tensors.Floats(WeightName(names, Role::kPositionEmbedding), shape));
  }
  // Grown one by one: a false layer count fails at its first missing tensor.
  for (int i = 0; i < config.n_layers; ++i) {
    HEARTH_ASSIGN(LayerWeights layer, assembler.Layer(i));
    w.layers.push_back(std::move(layer));
  }
  HEARTH_ASSIGN(w.final_norm, assembler.Norm(Role::kFinalNorm, 0));
  if (config.tied_head) {
    w.head.w = w.token_embedding;
  } else {
    HEARTH_ASSIGN(w.head.w, tensors.Linear(WeightName(names, Role::kHead),
                                           config.vocab_size, config.d_model));
  }
  HEARTH_TRY(tensors.CheckAllUsed());
  return w;
}

}  // namespace hearth
