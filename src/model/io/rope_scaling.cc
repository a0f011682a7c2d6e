#include "model/io/rope_scaling.h"

#include <cmath>
#include <cstddef>
#include <numbers>

namespace hearth {
namespace {

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

}  // namespace hearth
