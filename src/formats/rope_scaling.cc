#include "formats/rope_scaling.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>

namespace hearth {
namespace {

// A divisor of a pair that stands, in GGUF.
constexpr float kStandingFactor = 1e30f;

bool Positive(double value) { return std::isfinite(value) && value > 0; }

Error Bad(const std::string& label, const std::string& what) {
  return {Code::kCorrupt, label + ": rope " + what};
}

}  // namespace

Result<std::vector<float>> PlainFrequencies(double base, int rotary_dim,
                                            const std::string& label) {
  if (!(std::isfinite(base) && base >= 1)) {
    return Bad(label, "base is not a number of at least 1");
  }
  std::vector<float> inv_freq;
  for (int i = 0; i < rotary_dim / 2 && rotary_dim <= 1 << 14; ++i) {
    inv_freq.push_back(
        static_cast<float>(std::pow(base, -2.0 * i / rotary_dim)));
  }
  return inv_freq;
}

Result<void> ScaleLinear(double factor, std::vector<float>& inv_freq,
                         const std::string& label) {
  if (!(Positive(factor) && factor >= 1e-3 && factor <= 1e6)) {
    return Bad(label, "scaling factor is not a number in 0.001 to 1e6");
  }
  for (float& f : inv_freq) {
    f = static_cast<float>(static_cast<double>(f) / factor);
  }
  return {};
}

Result<void> ScaleByFactors(std::span<const float> factors,
                            std::vector<float>& inv_freq,
                            const std::string& label) {
  if (factors.size() != inv_freq.size()) {
    return Bad(label, "factors do not match the rotary size");
  }
  for (std::size_t i = 0; i < factors.size(); ++i) {
    if (!(Positive(factors[i]) && factors[i] >= 1e-3f && factors[i] <= 1e6f)) {
      return Bad(label, "factor is not a number in 0.001 to 1e6");
    }
    inv_freq[i] /= factors[i];
  }
  return {};
}

Result<void> ScaleLlama3(const Llama3Scaling& s, std::vector<float>& inv_freq,
                         const std::string& label) {
  if (!(Positive(s.factor) && s.factor >= 1 && s.factor <= 1e6)) {
    return Bad(label, "scaling factor is not a number in 1 to 1e6");
  }
  if (!(Positive(s.low_freq_factor) && Positive(s.original_context) &&
        std::isfinite(s.high_freq_factor) &&
        s.high_freq_factor > s.low_freq_factor)) {
    return Bad(label,
               "llama3 scaling needs 0 < low_freq_factor < "
               "high_freq_factor and a positive original context");
  }
  for (float& f : inv_freq) {
    const double plain = f;
    const double turns =  // full turns within the original context
        s.original_context * plain / (2 * std::numbers::pi);
    const double blend =
        (turns - s.low_freq_factor) / (s.high_freq_factor - s.low_freq_factor);
    if (blend >= 1) continue;
    const double scaled = plain / s.factor;
    f = static_cast<float>(blend <= 0 ? scaled
                                      : (1 - blend) * scaled + blend * plain);
  }
  return {};
}

Result<void> ScaleYarn(const RopeScaling& s, int rotary_dim,
                       std::vector<float>& inv_freq, const std::string& label) {
  if (!(Positive(s.factor) && s.factor >= 1 && s.factor <= 1e6)) {
    return Bad(label, "scaling factor is not a number in 1 to 1e6");
  }
  if (!(Positive(s.beta_fast) && Positive(s.beta_slow) &&
        Positive(s.original_context) && s.original_context <= 1e9 &&
        s.base > 1)) {
    return Bad(label,
               "yarn scaling needs positive beta_fast, beta_slow and original "
               "context, and a base above 1");
  }
  // The index whose frequency turns `turns` times in the original context.
  const auto index_of = [&](double turns) {
    return rotary_dim *
           std::log(s.original_context / (turns * 2 * std::numbers::pi)) /
           (2 * std::log(s.base));
  };
  double low = index_of(s.beta_fast);
  double high = index_of(s.beta_slow);
  if (s.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, rotary_dim - 1.0);
  if (low == high) high += 0.001;  // no division by zero
  for (std::size_t i = 0; i < inv_freq.size(); ++i) {
    const double plain =
        std::pow(s.base, -2.0 * static_cast<double>(i) / rotary_dim);
    const double blend =
        std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    inv_freq[i] =
        static_cast<float>(plain / s.factor * blend + plain * (1 - blend));
  }
  return {};
}

double YarnAttentionFactor(double factor, double multiplier) {
  return factor <= 1 ? 1 : 0.1 * multiplier * std::log(factor) + 1;
}

double LongropeAttentionFactor(double factor, double original_context) {
  return factor <= 1
             ? 1
             : std::sqrt(1 + std::log(factor) / std::log(original_context));
}

namespace {

// The number in the file, or the kind's own.
Result<float> AttentionFactor(const RopeScaling& s, const std::string& label) {
  double factor = s.attention_factor;
  if (factor == 0) {
    factor = s.kind == RopeScalingKind::kYarn
                 ? YarnAttentionFactor(s.factor)
                 : LongropeAttentionFactor(s.factor, s.original_context);
  }
  if (!(Positive(factor) && factor <= 1e3)) {
    return Bad(label, "attention factor is not a number in 0 to 1000");
  }
  return static_cast<float>(factor);
}

// All pairs behind the first `turning` of them stand.
Result<void> LetStand(double turning, std::vector<float>& inv_freq,
                      const std::string& label) {
  if (!(turning >= 0 && turning <= 1)) {
    return Bad(label, "part that turns is not in 0 to 1");
  }
  const double n = turning * static_cast<double>(inv_freq.size());
  for (std::size_t i = 0; i < inv_freq.size(); ++i) {
    if (static_cast<double>(i) >= std::floor(n)) inv_freq[i] = 0;
  }
  return {};
}

Result<void> BuildLongrope(RopeConfig& rope, const std::string& label) {
  const RopeScaling& s = rope.scaling;
  if (!(Positive(s.original_context) && s.original_context > 1 &&
        std::isfinite(s.factor))) {
    return Bad(label, "longrope needs an original context");
  }
  rope.long_inv_freq = rope.inv_freq;
  HEARTH_TRY(ScaleByFactors(s.factors, rope.inv_freq, label));
  HEARTH_TRY(ScaleByFactors(s.long_factors, rope.long_inv_freq, label));
  HEARTH_ASSIGN(rope.cos_sin_factor, AttentionFactor(s, label));
  return {};
}

}  // namespace

void UseProportional(RopeScaling& s) {
  const auto stands = [](float f) { return f >= kStandingFactor; };
  const auto first = std::find_if(s.factors.begin(), s.factors.end(), stands);
  if (first == s.factors.end() ||
      !std::all_of(first, s.factors.end(), stands) ||
      !std::all_of(s.factors.begin(), first, [](float f) { return f == 1; })) {
    return;
  }
  s.kind = RopeScalingKind::kProportional;
  s.turning = static_cast<double>(first - s.factors.begin()) /
              static_cast<double>(s.factors.size());
  s.factors.clear();
}

std::vector<float> ProportionalFactors(const RopeScaling& s, int rotary_dim) {
  const int n = rotary_dim / 2;
  std::vector<float> factors(static_cast<std::size_t>(n), kStandingFactor);
  std::fill_n(factors.begin(), static_cast<int>(s.turning * n), 1.0f);
  return factors;
}

Result<void> BuildRope(RopeConfig& rope, const std::string& label) {
  const RopeScaling& s = rope.scaling;
  HEARTH_ASSIGN(rope.inv_freq,
                PlainFrequencies(s.base, rope.rotary_dim, label));
  rope.long_inv_freq.clear();
  rope.cos_sin_factor = 1.0f;
  switch (s.kind) {
    case RopeScalingKind::kNone:
      return {};
    case RopeScalingKind::kLinear:
      return ScaleLinear(s.factor, rope.inv_freq, label);
    case RopeScalingKind::kLlama3:
      return ScaleLlama3({.factor = s.factor,
                          .low_freq_factor = s.low_freq_factor,
                          .high_freq_factor = s.high_freq_factor,
                          .original_context = s.original_context},
                         rope.inv_freq, label);
    case RopeScalingKind::kFactors:
      return ScaleByFactors(s.factors, rope.inv_freq, label);
    case RopeScalingKind::kProportional:
      return LetStand(s.turning, rope.inv_freq, label);
    case RopeScalingKind::kYarn: {
      HEARTH_TRY(ScaleYarn(s, rope.rotary_dim, rope.inv_freq, label));
      HEARTH_ASSIGN(rope.cos_sin_factor, AttentionFactor(s, label));
      return {};
    }
    case RopeScalingKind::kLongrope:
      return BuildLongrope(rope, label);
  }
  return {};
}

}  // namespace hearth
