// Weights of layers that mix tokens with something else than attention.
#include <cmath>
#include <utility>

#include "formats/assemble/assembler.h"

namespace hearth {
namespace {

// Beyond any model; keeps products of sizes far within 62 bits.
constexpr int kTapsMax = 64;
constexpr int kHeadsMax = 1 << 14;
constexpr int kHeadDimMax = 1 << 14;

std::uint64_t U(std::int64_t n) { return static_cast<std::uint64_t>(n); }

// The decays' scale, where the file has its logarithm, which is kept in `logs`.
std::vector<float> Scales(std::vector<float> logs_or_scales, bool are_logs,
                          std::vector<float>& logs) {
  if (!are_logs) return logs_or_scales;
  logs = logs_or_scales;
  for (float& x : logs_or_scales) {
    x = static_cast<float>(-std::exp(double{x}));
  }
  return logs_or_scales;
}

}  // namespace

Result<void> CheckMixers(const ModelConfig& c, const std::string& label) {
  bool attends = c.layer_kinds.empty(), convolves = false, has_nets = false;
  bool has_mamba = false;
  for (const LayerKind& kind : c.layer_kinds) {
    attends = attends || Attends(kind.mixer);
    has_nets = has_nets || kind.mixer == Mixer::kDeltaNet;
    has_mamba = has_mamba || HasMamba2(kind.mixer);
    convolves =
        convolves || has_nets || has_mamba || kind.mixer == Mixer::kShortConv;
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
  const Mamba2Shape& m = c.mamba2;
  const bool mamba_usable =
      m.n_heads >= 1 && m.n_heads <= kHeadsMax && m.head_dim >= 1 &&
      m.head_dim <= kHeadDimMax && m.n_groups >= 1 && m.n_state >= 1 &&
      m.n_state <= kHeadDimMax && m.n_heads % m.n_groups == 0;
  if (has_mamba && !mamba_usable) {
    return bad("Mamba-2 mixers of " + std::to_string(m.n_heads) + " heads of " +
               std::to_string(m.head_dim) + " in " +
               std::to_string(m.n_groups) + " groups with states of " +
               std::to_string(m.n_state) + " are no usable model");
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

Result<void> Assembler::AddMixer(int i, LayerWeights& w) const {
  const Mixer mixer = config.KindOf(i).mixer;
  if (mixer == Mixer::kShortConv) {
    HEARTH_ASSIGN(w.short_conv, ShortConv(i));
  }
  if (mixer == Mixer::kDeltaNet) {
    HEARTH_ASSIGN(w.delta_net, DeltaNet(i));
  }
  if (HasMamba2(mixer)) {
    HEARTH_ASSIGN(w.mamba2, Mamba2(i));
  }
  return Attends(mixer) ? AddAttention(i, w) : Result<void>();
}

// From [n_channels][n_taps], in Hugging Face's form with a 1 between them.
Result<ConvWeights> Assembler::Convolution(Role role, int layer,
                                           std::int64_t n_channels) const {
  const std::string name = WeightName(names, role, layer);
  const SourceTensor* tensor = tensors.Find(name);
  std::vector<std::uint64_t> shape = {U(n_channels), U(config.conv_taps)};
  if (tensor != nullptr && tensor->shape.size() == 3) {
    shape.insert(shape.begin() + 1, 1);
  }
  HEARTH_ASSIGN(const std::vector<float> by_channel,
                tensors.Floats(name, shape));
  ConvWeights conv;
  conv.taps.resize(by_channel.size());
  const auto n = static_cast<std::size_t>(n_channels);
  const auto k = static_cast<std::size_t>(config.conv_taps);
  for (std::size_t c = 0; c < n; ++c) {
    for (std::size_t t = 0; t < k; ++t) {
      conv.taps[t * n + c] = by_channel[c * k + t];
    }
  }
  return conv;
}

Result<ShortConvWeights> Assembler::ShortConv(int i) const {
  const std::int64_t d = config.d_model;
  ShortConvWeights w;
  HEARTH_ASSIGN(w.in, LinearLayer(Role::kShortConvIn, i, 3 * d, d, false));
  HEARTH_ASSIGN(w.conv, Convolution(Role::kShortConvTaps, i, d));
  HEARTH_ASSIGN(w.out, LinearLayer(Role::kShortConvOut, i, d, d, false));
  return w;
}

Result<DeltaNetWeights> Assembler::DeltaNet(int i) const {
  const DeltaNetShape& net = config.delta_net;
  const std::int64_t d = config.d_model, n = net.n_value_heads;
  const std::int64_t n_values = n * net.value_dim;
  const auto matrix = [&](Role role, std::int64_t n_out, std::int64_t n_in) {
    return LinearLayer(role, i, n_out, n_in, false);
  };
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
  HEARTH_ASSIGN(w.conv, Convolution(Role::kDeltaTaps, i, net.n_channels()));
  HEARTH_ASSIGN(std::vector<float> scales, Vector(Role::kDeltaScale, i, n));
  w.decay_scale = Scales(std::move(scales), plan.decay_is_log, w.decay_log);
  HEARTH_ASSIGN(w.decay_bias, Bias(Role::kDeltaBias, i, n));
  HEARTH_ASSIGN(w.norm, Vector(Role::kDeltaNorm, i, net.value_dim));
  HEARTH_ASSIGN(w.out, matrix(Role::kDeltaOut, d, n_values));
  return w;
}

Result<Mamba2Weights> Assembler::Mamba2(int i) const {
  const Mamba2Shape& shape = config.mamba2;
  const std::int64_t d = config.d_model, n = shape.n_heads;
  Mamba2Weights w;
  HEARTH_ASSIGN(w.in,
                LinearLayer(Role::kMambaIn, i, shape.n_projected(), d, false));
  HEARTH_ASSIGN(w.conv, Convolution(Role::kMambaTaps, i, shape.n_channels()));
  if (plan.conv_bias) {
    HEARTH_ASSIGN(w.conv.bias, Bias(Role::kMambaTaps, i, shape.n_channels()));
  }
  HEARTH_ASSIGN(std::vector<float> scales, Vector(Role::kMambaScale, i, n));
  w.decay_scale = Scales(std::move(scales), plan.decay_is_log, w.decay_log);
  HEARTH_ASSIGN(w.step_bias, Bias(Role::kMambaStep, i, n));
  HEARTH_ASSIGN(w.skip, Vector(Role::kMambaSkip, i, n));
  if (shape.norm) {
    HEARTH_ASSIGN(w.norm, Vector(Role::kMambaNorm, i, shape.width()));
  }
  HEARTH_ASSIGN(w.out,
                LinearLayer(Role::kMambaOut, i, d, shape.width(), false));
  return w;
}

}  // namespace hearth
