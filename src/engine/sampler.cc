#include "engine/sampler.h"

#include <algorithm>
#include <cmath>

#include "kernels/kernels.h"

namespace hearth {
namespace {

// SplitMix64: a counter in, 64 well mixed bits out.
std::uint64_t Mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace

Result<void> CheckSampling(const SamplingOptions& options) {
  if (!(options.temperature >= 0) || !std::isfinite(options.temperature)) {
    return {Code::kInvalidArgument, "temperature must be 0 or more"};
  }
  if (options.top_k < 0) {
    return {Code::kInvalidArgument, "top-k must be 0 (off) or more"};
  }
  if (!(options.top_p > 0 && options.top_p <= 1)) {
    return {Code::kInvalidArgument, "top-p must be above 0 and at most 1"};
  }
  if (!(options.min_p >= 0 && options.min_p < 1)) {
    return {Code::kInvalidArgument, "min-p must be at least 0 and below 1"};
  }
  return {};
}

double Sampler::NextUniform() {
  const std::uint64_t bits = Mix(Mix(options_.seed) ^ Mix(n_draws_++));
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

void Sampler::KeepTopK() {
  const auto k = static_cast<std::size_t>(options_.top_k);
  if (k == 0 || k >= candidates_.size()) return;
  candidates_.resize(k);  // sorted already
}

void Sampler::KeepTopP() {
  if (options_.top_p >= 1) return;
  double total = 0;
  for (const Candidate& c : candidates_) total += c.weight;
  double sum = 0;
  std::size_t n = 0;
  while (n < candidates_.size() && sum < options_.top_p * total) {
    sum += candidates_[n++].weight;
  }
  candidates_.resize(std::max<std::size_t>(1, n));
}

void Sampler::KeepMinP() {
  if (options_.min_p <= 0) return;
  const double floor = options_.min_p * candidates_.front().weight;
  std::size_t n = 1;
  while (n < candidates_.size() && candidates_[n].weight >= floor) ++n;
  candidates_.resize(n);
}

std::int32_t Sampler::Sample(std::span<const float> logits) {
  const auto best = static_cast<std::size_t>(ActiveKernels().argmax(
      logits.data(), static_cast<std::int64_t>(logits.size())));
  if (options_.temperature == 0) return static_cast<std::int32_t>(best);

  candidates_.clear();
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double weight = std::exp((static_cast<double>(logits[i]) -
                                    static_cast<double>(logits[best])) /
                                   options_.temperature);
    // Not-a-number never becomes a candidate.
    if (weight > 0) {
      candidates_.push_back({logits[i], static_cast<std::int32_t>(i), weight});
    }
  }
  if (candidates_.empty()) return static_cast<std::int32_t>(best);
  if (options_.top_k > 0 || options_.top_p < 1 || options_.min_p > 0) {
    std::sort(candidates_.begin(), candidates_.end(),
              [](const Candidate& a, const Candidate& b) {
                return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
              });
    KeepTopK();
    KeepTopP();
    KeepMinP();
  }
  double total = 0;
  for (const Candidate& c : candidates_) total += c.weight;
  double point = NextUniform() * total;
  for (const Candidate& c : candidates_) {
    point -= c.weight;
    if (point < 0) return c.id;
  }
  return candidates_.back().id;
}

}  // namespace hearth
