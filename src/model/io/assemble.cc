#include "model/io/assemble.h"

#include <cmath>
#include <utility>

namespace hearth {
namespace {

// Beyond any model; keeps every product of two sizes within 62 bits and the
// sizes themselves within int.
constexpr int kSizeMax = 1 << 30;
constexpr int kHeadDimMax = 1 << 14;
constexpr int kLayersMax = 1 << 14;

// What AssembleWeights needs all the time.
struct Assembler {
  const ModelConfig& config;
  const WeightPlan& plan;
  const NameScheme& names;
  TensorSet& tensors;

  Result<NormWeights> Norm(Role role, int layer) const {
    const std::uint64_t shape[] = {static_cast<std::uint64_t>(config.d_model)};
    NormWeights norm;
    HEARTH_ASSIGN(norm.weight,
                  tensors.Floats(WeightName(names, role, layer), shape));
    if (plan.norm_bias) {
      HEARTH_ASSIGN(norm.bias,
                    tensors.Floats(BiasName(names, role, layer), shape));
    }
    return norm;
  }

  Result<Linear> LinearLayer(Role role, int layer, std::int64_t n_out,
                             std::int64_t n_in, bool with_bias) const {
    Linear linear;
    HEARTH_ASSIGN(linear.w,
                  tensors.Linear(WeightName(names, role, layer), n_out, n_in));
    if (with_bias) {
      const std::uint64_t shape[] = {static_cast<std::uint64_t>(n_out)};
      HEARTH_ASSIGN(linear.bias,
                    tensors.Floats(BiasName(names, role, layer), shape));
    }
    return linear;
  }

  Result<LayerWeights> Layer(int i) const {
    const std::int64_t d = config.d_model;
    const std::int64_t d_q = std::int64_t{config.n_heads} * config.head_dim;
    const std::int64_t d_kv = std::int64_t{config.n_kv_heads} * config.head_dim;
    const std::int64_t d_mlp = config.d_mlp;
    LayerWeights w;
    HEARTH_ASSIGN(w.attention_norm, Norm(Role::kAttentionNorm, i));
    HEARTH_ASSIGN(w.q, LinearLayer(Role::kQ, i, d_q, d, plan.qkv_bias));
    HEARTH_ASSIGN(w.k, LinearLayer(Role::kK, i, d_kv, d, plan.qkv_bias));
    HEARTH_ASSIGN(w.v, LinearLayer(Role::kV, i, d_kv, d, plan.qkv_bias));
    HEARTH_ASSIGN(w.o, LinearLayer(Role::kO, i, d, d_q, plan.o_bias));
    HEARTH_ASSIGN(w.mlp_norm, Norm(Role::kMlpNorm, i));
    if (config.mlp == MlpKind::kGatedSilu) {
      HEARTH_ASSIGN(w.gate,
                    LinearLayer(Role::kGate, i, d_mlp, d, plan.mlp_bias));
    }
    HEARTH_ASSIGN(w.up, LinearLayer(Role::kUp, i, d_mlp, d, plan.mlp_bias));
    HEARTH_ASSIGN(w.down, LinearLayer(Role::kDown, i, d, d_mlp, plan.mlp_bias));
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
  if (!(c.norm_eps >= 0.0f && c.norm_eps < 1.0f)) {
    return Bad(label, "norm epsilon is not in 0 to 1");
  }
  if (!std::isfinite(c.attention_scale) || c.attention_scale <= 0.0f) {
    return Bad(label, "attention scale is not a positive number");
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
    HEARTH_ASSIGN(w.head,
                  assembler.LinearLayer(Role::kHead, 0, config.vocab_size,
                                        config.d_model, false));
  }
  HEARTH_TRY(tensors.CheckAllUsed());
  return w;
}

}  // namespace hearth
