// Distributions of the next token, and how far two of them lie apart.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

namespace hearth {

// Log-probabilities of one row of logits.
inline std::vector<double> LogSoftmax(std::span<const float> logits) {
  const double max = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float x : logits) sum += std::exp(x - max);
  std::vector<double> out;
  out.reserve(logits.size());
  for (const float x : logits) out.push_back(x - max - std::log(sum));
  return out;
}

// Kullback-Leibler divergence of q from p, in nats; both are log-probabilities.
inline double Divergence(std::span<const double> p, std::span<const double> q) {
  double kl = 0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    kl += std::exp(p[i]) * (p[i] - q[i]);
  }
  return kl;
}

inline bool SameFirstChoice(std::span<const double> p,
                            std::span<const double> q) {
  return std::max_element(p.begin(), p.end()) - p.begin() ==
         std::max_element(q.begin(), q.end()) - q.begin();
}

}  // namespace hearth
