// Rotary frequencies: the plain ones and the changes that long-context variants
// make to them. Computed in double and rounded once.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "hearth/result.h"
#include "model/config.h"

namespace hearth {

// base^(-2i / rotary_dim) for i in [0, rotary_dim / 2). kCorrupt when base is
// not a finite number of at least 1; a rotary_dim that CheckConfig would refuse
// gives an empty list.
Result<std::vector<float>> PlainFrequencies(double base, int rotary_dim,
                                            const std::string& label);

// Every position divided by `factor`: kCorrupt unless factor is finite and > 0.
Result<void> ScaleLinear(double factor, std::vector<float>& inv_freq,
                         const std::string& label);

// inv_freq[i] /= factors[i]: llama3 scaling as GGUF stores it.
Result<void> ScaleByFactors(std::span<const float> factors,
                            std::vector<float>& inv_freq,
                            const std::string& label);

// Llama 3.1: wavelengths beyond original_context / low_freq_factor are
// stretched by `factor`, those below original_context / high_freq_factor kept,
// those between blended.
struct Llama3Scaling {
  double factor = 1, low_freq_factor = 1, high_freq_factor = 4;
  double original_context = 8192;
};
Result<void> ScaleLlama3(const Llama3Scaling& scaling,
                         std::vector<float>& inv_freq,
                         const std::string& label);

// Yarn: frequencies that turn more than beta_fast times within the original
// context are kept, those below beta_slow turns divided by `factor`, those
// between blended along their index. `base` and rotary_dim are those of
// inv_freq.
Result<void> ScaleYarn(const RopeScaling& scaling, int rotary_dim,
                       std::vector<float>& inv_freq, const std::string& label);

// What yarn multiplies cos and sin by unless the file gives another number:
// 0.1 ln(factor) + 1, the logarithm times `multiplier`.
double YarnAttentionFactor(double factor, double multiplier = 1);
// The same of longrope: sqrt(1 + ln(factor) / ln(original context)).
double LongropeAttentionFactor(double factor, double original_context);

// Divisors that let the first pairs turn as they are and all others stand, as
// GGUF says it (1, then 1e30), become kProportional; others stay.
void UseProportional(RopeScaling& scaling);
// The divisors of kProportional in that form.
std::vector<float> ProportionalFactors(const RopeScaling& scaling,
                                       int rotary_dim);

// Fills inv_freq, long_inv_freq and cos_sin_factor from rope.scaling and
// rope.rotary_dim.
Result<void> BuildRope(RopeConfig& rope, const std::string& label);

}  // namespace hearth
