#include "formats/assemble_mixers.h"

#include <cmath>
#include <utility>

namespace hearth {
namespace {

// Beyond any model; keeps products of sizes far within 62 bits.
constexpr int kTapsMax = 64;
constexpr int kHeadsMax = 1 << 14;
constexpr int kHeadDimMax = 1 << 14;

std::uint64_t U(std::int64_t n) { return static_cast<std::uint64_t>(n); }

Result<Linear> Matrix(const NameScheme& names, Role role, int layer,
                      std::int64_t n_out, std::int64_t n_in,
                      TensorSet& tensors) {
  Linear linear;
  HEARTH_ASSIGN(linear.w,
                tensors.Linear(WeightName(names, role, layer), n_out, n_in));
  return linear;
}

// From [n_channels][n_taps], in Hugging Face's form with a 1 between them.
Result<ConvWeights> Taps(const NameScheme& names, Role role, int layer,
                         int n_taps, std::int64_t n_channels,
                         TensorSet& tensors) {
  const std::string name = WeightName(names, role, layer);
  const SourceTensor* tensor = tensors.Find(name);
  std::vector<std::uint64_t> shape = {U(n_channels), U(n_taps)};
  if (tensor != nullptr && tensor->shape.size() == 3) {
    shape.insert(shape.begin() + 1, 1);
  }
  HEARTH_ASSIGN(const std::vector<float> by_channel,
                tensors.Floats(name, shape));
  ConvWeights conv;
  conv.taps.resize(by_channel.size());
  const auto n = static_cast<std::size_t>(n_channels);
  const auto k = static_cast<std::size_t>(n_taps);
  for (std::size_t c = 0; c < n; ++c) {
    for (std::size_t t = 0; t < k; ++t) {
      conv.taps[t * n + c] = by_channel[c * k + t];
    }
  }
  return conv;
}

}  // namespace

Result<void> CheckMixers(const ModelConfig& c, const std::string& label) {
  bool attends = c.layer_kinds.empty(), convolves = false, has_nets = false;
  for (const LayerKind& kind : c.layer_kinds) {
    attends = attends || kind.mixer == Mixer::kAttention;
    convolves = convolves || kind.mixer != Mixer::kAttention;
    has_nets = has_nets || kind.mixer == Mixer::kDeltaNet;
  }
  const auto bad = [&](const std::string& what) {
    return Error{Code::kCorrupt, label + ": " + what};
  };
  if (!attends) return bad("no layer has attention");
  if (convolves && (c.conv_taps < 2 || c.conv_taps > kTapsMax)) {
    return bad("convolutions of " + std::to_string(c.conv_taps) +
               " taps; a model has 2 to " + std::to_string(kTapsMax));
  }
  const DeltaNetShape& net = c.delta_net;
  const bool usable = net.n_key_heads >= 1 &&
                      net.n_value_heads >= net.n_key_heads &&
                      net.n_value_heads <= kHeadsMax &&
                      net.n_value_heads % net.n_key_heads == 0 &&
                      net.key_dim >= 1 && net.key_dim <= kHeadDimMax &&
                      net.value_dim >= 1 && net.value_dim <= kHeadDimMax;
  if (has_nets && !usable) {
    return bad("delta nets of " + std::to_string(net.n_key_heads) +
               " key heads and " + std::to_string(net.n_value_heads) +
               " value heads of " + std::to_string(net.key_dim) + " by " +
               std::to_string(net.value_dim) + " are no usable model");
  }
  if (c.d_shared_expert < 0 || c.d_shared_expert > 1 << 30) {
    return bad("the width of the shared expert is impossible");
  }
  if (!std::isfinite(c.query_growth.beta) || c.query_growth.beta < 0 ||
      (c.query_growth.beta > 0 && c.query_growth.tokens < 1)) {
    return bad(
        "the growth of queries is not a number of at least 0 for each "
        "of so many tokens");
  }
  return {};
}

Result<ShortConvWeights> AssembleShortConv(const ModelConfig& config,
                                           const NameScheme& names, int layer,
                                           TensorSet& tensors) {
  const std::int64_t d = config.d_model;
  ShortConvWeights w;
  HEARTH_ASSIGN(w.in,
                Matrix(names, Role::kShortConvIn, layer, 3 * d, d, tensors));
  HEARTH_ASSIGN(w.conv, Taps(names, Role::kShortConvTaps, layer,
                             config.conv_taps, d, tensors));
  HEARTH_ASSIGN(w.out,
                Matrix(names, Role::kShortConvOut, layer, d, d, tensors));
  return w;
}

Result<DeltaNetWeights> AssembleDeltaNet(const ModelConfig& config,
                                         const WeightPlan& plan,
                                         const NameScheme& names, int layer,
                                         TensorSet& tensors) {
  const DeltaNetShape& net = config.delta_net;
  const std::int64_t d = config.d_model, n = net.n_value_heads;
  const std::int64_t n_values = n * net.value_dim;
  const auto matrix = [&](Role role, std::int64_t n_out, std::int64_t n_in) {
    return Matrix(names, role, layer, n_out, n_in, tensors);
  };
  const std::uint64_t per_head[] = {U(n)};
  const std::uint64_t per_value[] = {U(net.value_dim)};
  DeltaNetWeights w;
  if (plan.fused_delta_net) {
    HEARTH_ASSIGN(w.qkv_gate,
                  matrix(Role::kDeltaQkvGate, net.n_channels() + n_values, d));
  } else {
    HEARTH_ASSIGN(w.qkv, matrix(Role::kDeltaQkv, net.n_channels(), d));
    HEARTH_ASSIGN(w.gate, matrix(Role::kDeltaGate, n_values, d));
  }
  if (plan.fused_delta_rates) {
    HEARTH_ASSIGN(w.rate_decay, matrix(Role::kDeltaRateDecay, 2 * n, d));
  } else {
    HEARTH_ASSIGN(w.rate, matrix(Role::kDeltaRate, n, d));
    HEARTH_ASSIGN(w.decay, matrix(Role::kDeltaDecay, n, d));
  }
  HEARTH_ASSIGN(w.conv, Taps(names, Role::kDeltaTaps, layer, config.conv_taps,
                             net.n_channels(), tensors));
  HEARTH_ASSIGN(
      w.decay_scale,
      tensors.Floats(WeightName(names, Role::kDeltaScale, layer), per_head));
  if (plan.delta_scale_is_log) {
    w.decay_log = w.decay_scale;
    for (float& x : w.decay_scale) {
      x = static_cast<float>(-std::exp(double{x}));
    }
  }
  HEARTH_ASSIGN(
      w.decay_bias,
      tensors.Floats(BiasName(names, Role::kDeltaBias, layer), per_head));
  HEARTH_ASSIGN(
      w.norm,
      tensors.Floats(WeightName(names, Role::kDeltaNorm, layer), per_value));
  HEARTH_ASSIGN(w.out, matrix(Role::kDeltaOut, d, n_values));
  return w;
}

}  // namespace hearth
