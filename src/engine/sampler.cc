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

double Distribution::Of(std::int32_t id) const {
  const auto at = std::find_if(candidates.begin(), candidates.end(),
                               [&](const Candidate& c) { return c.id == id; });
  return at == candidates.end() ? 0 : at->weight / total;
}

double Sampler::NextUniform() {
  const std::uint64_t bits = Mix(Mix(options_.seed) ^ Mix(n_draws_++));
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

void Sampler::KeepTopP(std::vector<Distribution::Candidate>& candidates) const {
  if (options_.top_p >= 1) return;
  double total = 0;
  for (const auto& c : candidates) total += c.weight;
  double sum = 0;
  std::size_t n = 0;
  while (n < candidates.size() && sum < options_.top_p * total) {
    sum += candidates[n++].weight;
  }
  candidates.resize(std::max<std::size_t>(1, n));
}

void Sampler::KeepMinP(std::vector<Distribution::Candidate>& candidates) const {
  if (options_.min_p <= 0) return;
  const double floor = options_.min_p * candidates.front().weight;
  std::size_t n = 1;
  while (n < candidates.size() && candidates[n].weight >= floor) ++n;
  candidates.resize(n);
}

void Sampler::Filter(std::span<const float> logits, Distribution& out) const {
  const auto best = static_cast<std::size_t>(ActiveKernels().argmax(
      logits.data(), static_cast<std::int64_t>(logits.size())));
  auto& candidates = out.candidates;
  candidates.clear();
  if (options_.temperature > 0) {
    for (std::size_t i = 0; i < logits.size(); ++i) {
      const double weight = std::exp(
          (static_cast<double>(logits[i]) - static_cast<double>(logits[best])) /
          options_.temperature);
      // Not-a-number never becomes a candidate.
      if (weight > 0) {
        candidates.push_back({logits[i], static_cast<std::int32_t>(i), weight});
      }
    }
  }
  if (candidates.empty()) {
    candidates.push_back({logits[best], static_cast<std::int32_t>(best), 1});
  }
  if (options_.top_k > 0 || options_.top_p < 1 || options_.min_p > 0) {
    std::sort(candidates.begin(), candidates.end(),
              [](const auto& a, const auto& b) {
                return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
              });
    const auto k = static_cast<std::size_t>(options_.top_k);
    if (k > 0 && k < candidates.size()) candidates.resize(k);
    KeepTopP(candidates);
    KeepMinP(candidates);
  }
  out.total = 0;
  for (const auto& c : candidates) out.total += c.weight;
}

std::int32_t Sampler::Draw(const Distribution& distribution) {
  if (options_.temperature == 0) return distribution.candidates.front().id;
  double point = NextUniform() * distribution.total;
  for (const auto& c : distribution.candidates) {
    point -= c.weight;
    if (point < 0) return c.id;
  }
  return distribution.candidates.back().id;
}

std::int32_t Sampler::Sample(std::span<const float> logits) {
  Filter(logits, scratch_);
  return Draw(scratch_);
}

std::int32_t Sampler::AcceptOrDraw(const Distribution& p, const Distribution& q,
                                   std::int32_t draft) {
  if (options_.temperature == 0) return p.candidates.front().id;
  if (NextUniform() * q.Of(draft) < p.Of(draft)) return draft;
  // What p has more than q, over the ids of q laid out densely.
  for (const auto& c : q.candidates) {
    const auto id = static_cast<std::size_t>(c.id);
    if (id >= q_of_id_.size()) q_of_id_.resize(id + 1, 0.0);
    q_of_id_[id] = c.weight / q.total;
  }
  scratch_.candidates.clear();
  scratch_.total = 0;
  for (const auto& c : p.candidates) {
    const auto id = static_cast<std::size_t>(c.id);
    const double more =
        c.weight / p.total - (id < q_of_id_.size() ? q_of_id_[id] : 0.0);
    if (more <= 0) continue;
    scratch_.candidates.push_back({c.logit, c.id, more});
    scratch_.total += more;
  }
  for (const auto& c : q.candidates) {
    q_of_id_[static_cast<std::size_t>(c.id)] = 0.0;
  }
  // p = q but for rounding: then p itself is what is left.
  return Draw(scratch_.candidates.empty() ? p : scratch_);
}

}  // namespace hearth
