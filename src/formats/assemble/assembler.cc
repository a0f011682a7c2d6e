#include "formats/assemble/assembler.h"

#include <utility>

namespace hearth {
namespace {

std::uint64_t U(std::int64_t n) { return static_cast<std::uint64_t>(n); }

// However many dimensions they are in.
Result<std::vector<float>> Numbers(const std::string& name, std::int64_t n,
                                   TensorSet& tensors) {
  std::vector<std::uint64_t> shape = {U(n)};
  const SourceTensor* tensor = tensors.Find(name);
  if (tensor != nullptr && tensor->shape.size() <= 4) {
    std::uint64_t size = 1;
    for (const std::uint64_t d : tensor->shape) {
      size = d == 0 || size > U(n) / d ? 0 : size * d;
    }
    if (size == U(n)) shape = tensor->shape;
  }
  return tensors.Floats(name, shape);
}

}  // namespace

Result<std::vector<float>> Assembler::NormWeight(Role role, int layer,
                                                 std::int64_t n) const {
  const std::uint64_t shape[] = {U(n)};
  HEARTH_ASSIGN(std::vector<float> weight,
                tensors.Floats(WeightName(names, role, layer), shape));
  if (plan.norm_offset != 0) {
    for (float& w : weight) w += plan.norm_offset;
  }
  return weight;
}

Result<NormWeights> Assembler::Norm(Role role, int layer) const {
  NormWeights norm;
  HEARTH_ASSIGN(norm.weight, NormWeight(role, layer, config.d_model));
  if (plan.norm_bias) {
    const std::uint64_t shape[] = {U(config.d_model)};
    HEARTH_ASSIGN(norm.bias,
                  tensors.Floats(BiasName(names, role, layer), shape));
  }
  return norm;
}

Result<std::vector<float>> Assembler::Vector(Role role, int layer,
                                             std::int64_t n) const {
  return Numbers(WeightName(names, role, layer), n, tensors);
}

Result<std::vector<float>> Assembler::Bias(Role role, int layer,
                                           std::int64_t n) const {
  return Numbers(BiasName(names, role, layer), n, tensors);
}

Result<Linear> Assembler::LinearLayer(Role role, int layer, std::int64_t n_out,
                                      std::int64_t n_in, bool with_bias,
                                      int expert) const {
  const std::string name = WeightName(names, role, layer, expert);
  Linear linear;
  HEARTH_ASSIGN(linear.w, plan.transposed
                              ? tensors.Transposed(name, n_out, n_in)
                              : tensors.Linear(name, n_out, n_in));
  if (with_bias) {
    const std::uint64_t shape[] = {U(n_out)};
    HEARTH_ASSIGN(linear.bias,
                  tensors.Floats(BiasName(names, role, layer, expert), shape));
  }
  return linear;
}

Result<LayerWeights> Assembler::Layer(int i) const {
  const bool before = config.norm_placement != NormPlacement::kAfter;
  const bool after = config.norm_placement != NormPlacement::kBefore;
  LayerWeights w;
  if (config.KindOf(i).mixer != Mixer::kNone) {
    if (before) {
      HEARTH_ASSIGN(w.attention_norm, Norm(Role::kAttentionNorm, i));
    }
    HEARTH_TRY(AddMixer(i, w));
    if (after) {
      HEARTH_ASSIGN(w.post_attention_norm, Norm(Role::kPostAttentionNorm, i));
    }
  }
  if (config.KindOf(i).ffn != Ffn::kNone) {
    if (before) {
      HEARTH_ASSIGN(w.mlp_norm, Norm(Role::kMlpNorm, i));
    }
    if (config.HasDense(i)) {
      HEARTH_ASSIGN(w.mlp, Dense(i));
    }
    if (config.HasExperts(i)) HEARTH_TRY(AddExperts(i, w));
    if (after) {
      HEARTH_ASSIGN(w.post_mlp_norm, Norm(Role::kPostMlpNorm, i));
    }
  }
  if (config.d_layer_input > 0) {
    const std::int64_t n = config.d_layer_input, d = config.d_model;
    HEARTH_ASSIGN(w.input.gate, LinearLayer(Role::kInputGate, i, n, d, false));
    HEARTH_ASSIGN(w.input.up, LinearLayer(Role::kInputUp, i, d, n, false));
    HEARTH_ASSIGN(w.input.norm, Norm(Role::kInputNorm, i));
  }
  if (plan.layer_scale) {
    HEARTH_ASSIGN(w.scale, Vector(Role::kLayerScale, i, 1));
  }
  return w;
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
    const std::uint64_t shape[] = {U(config.context_length), U(config.d_model)};
    HEARTH_ASSIGN(
        w.position_embedding,
        tensors.Floats(WeightName(names, Role::kPositionEmbedding), shape));
  }
  if (config.d_layer_input > 0) {
    const std::int64_t n = config.d_layer_input;
    HEARTH_ASSIGN(w.layer_embedding,
                  tensors.Embedding(WeightName(names, Role::kLayerEmbedding),
                                    config.vocab_size, config.n_layers * n));
    HEARTH_ASSIGN(
        w.layer_projection,
        assembler.LinearLayer(Role::kLayerProjection, 0, config.n_layers * n,
                              config.d_model, false));
    HEARTH_ASSIGN(w.layer_projection_norm,
                  assembler.NormWeight(Role::kLayerProjectionNorm, 0, n));
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
