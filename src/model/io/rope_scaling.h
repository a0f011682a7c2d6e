// Rotary frequencies: the plain ones and the changes that long-context variants
// make to them. Computed in double and rounded once.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "hearth/result.h"

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

}  // namespace hearth
