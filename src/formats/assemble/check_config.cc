#include <cmath>

#include "formats/assemble/assembler.h"

namespace hearth {
namespace {

// Beyond any model; keeps every product of two sizes within 62 bits and the
// sizes themselves within int.
constexpr int kSizeMax = 1 << 30;
constexpr int kHeadDimMax = 1 << 14;
constexpr int kLayersMax = 1 << 14;
constexpr int kExpertsMax = 1 << 12;

Error Bad(const std::string& label, const std::string& what) {
  return {Code::kCorrupt, label + ": " + what};
}

Result<void> CheckHeads(const ModelConfig& c, int i, const std::string& label) {
  const int n_kv = c.KvHeads(i), dim = c.HeadDim(i);
  if (n_kv > kHeadDimMax || dim > kHeadDimMax || c.MlpWidth(i) > kSizeMax) {
    return Bad(label, "a layer's sizes are impossible");
  }
  if (c.n_heads % n_kv != 0) {
    return Bad(label, std::to_string(c.n_heads) + " heads cannot share " +
                          std::to_string(n_kv) + " KV heads evenly");
  }
  const LayerKind kind = c.KindOf(i);
  const RopeConfig& rope = kind.rope == RopeUse::kLocal ? c.local_rope : c.rope;
  const int turning = c.latent.kv_rank > 0 ? c.latent.rope_dim : dim;
  if (kind.rope != RopeUse::kNone &&
      (rope.rotary_dim < 0 || rope.rotary_dim > turning ||
       rope.rotary_dim % 2 != 0)) {
    return Bad(label, "rotary size " + std::to_string(rope.rotary_dim) +
                          " is not an even number up to the head size " +
                          std::to_string(turning));
  }
  const int source = kind.kv_source;
  if (source >= 0 && (source >= i || !c.OwnsKv(source) ||
                      c.KvHeads(source) != n_kv || c.HeadDim(source) != dim)) {
    return Bad(label, "layer " + std::to_string(i) +
                          " cannot attend to what layer " +
                          std::to_string(source) + " keeps");
  }
  return {};
}

Result<void> CheckLayers(const ModelConfig& c, const std::string& label) {
  for (const LayerKind& kind : c.layer_kinds) {
    if (kind.window < 0) return Bad(label, "a window is negative");
    if (kind.n_kv_heads < 0 || kind.head_dim < 0 || kind.d_mlp < 0) {
      return Bad(label, "a layer's size is negative");
    }
  }
  for (int i = 0; i < c.n_layers; ++i) {
    if (Attends(c.KindOf(i).mixer)) HEARTH_TRY(CheckHeads(c, i, label));
  }
  if (c.d_layer_input < 0 || c.d_layer_input > kHeadDimMax) {
    return Bad(label, "the width of the layers' inputs is impossible");
  }
  return {};
}

Result<void> CheckLatent(const ModelConfig& c, const std::string& label) {
  const auto& [kv_rank, q_rank, nope_dim, rope_dim, value_dim] = c.latent;
  if (kv_rank == 0) return {};
  for (const int size : {kv_rank, nope_dim, rope_dim, value_dim}) {
    if (size < 1 || size > kHeadDimMax) {
      return Bad(label, "the sizes of latent attention are impossible");
    }
  }
  if (q_rank < 0 || q_rank > kSizeMax) {
    return Bad(label, "the rank of queries is impossible");
  }
  return {};
}

Result<void> CheckRouter(const ModelConfig& c, const std::string& label) {
  const RouterRules& r = c.router_rules;
  if (!std::isfinite(r.scale) || r.scale <= 0) {
    return Bad(label, "the scale of experts' weights is not positive");
  }
  if (c.n_experts > 0 &&
      (r.n_groups < 1 || r.n_groups_used < 1 || r.n_groups_used > r.n_groups ||
       c.n_experts % r.n_groups != 0 ||
       c.n_experts / r.n_groups * r.n_groups_used < c.n_experts_used)) {
    return Bad(label, std::to_string(r.n_groups_used) + " of " +
                          std::to_string(r.n_groups) + " groups of " +
                          std::to_string(c.n_experts) +
                          " experts are no usable model");
  }
  for (const float scale :
       {c.part_scales.attention_out, c.part_scales.mamba_out,
        c.part_scales.mlp_gate, c.part_scales.mlp_down}) {
    if (!std::isfinite(scale)) return Bad(label, "a multiplier is no number");
  }
  for (const float scale : c.part_scales.mamba) {
    if (!std::isfinite(scale)) return Bad(label, "a multiplier is no number");
  }
  return {};
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
  HEARTH_TRY(CheckMixers(c, label));
  HEARTH_TRY(CheckLatent(c, label));
  HEARTH_TRY(CheckLayers(c, label));
  HEARTH_TRY(CheckRouter(c, label));
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
  return {};
}

std::string NameFromShape(const ModelConfig& config) {
  return config.architecture + "-" + std::to_string(config.n_layers) + "l-" +
         std::to_string(config.d_model) + "d";
}

}  // namespace hearth
