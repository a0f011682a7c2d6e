#include "engine/sampling/distribution.h"

#include <algorithm>
#include <cmath>

#include "kernels/kernels.h"

namespace hearth {
namespace {

using Candidates = std::vector<Distribution::Candidate>;

double Sum(const Candidates& candidates) {
  double total = 0;
  for (const auto& c : candidates) total += c.weight;
  return total;
}

}  // namespace

double Distribution::Of(std::int32_t id) const {
  const auto at = std::find_if(candidates.begin(), candidates.end(),
                               [&](const Candidate& c) { return c.id == id; });
  return at == candidates.end() ? 0 : at->weight / total;
}

void Distribution::SumUp() { total = Sum(candidates); }

void Weigh(std::span<const float> logits, double temperature,
           Candidates& candidates) {
  const auto best = static_cast<std::size_t>(ActiveKernels().argmax(
      logits.data(), static_cast<std::int64_t>(logits.size())));
  candidates.clear();
  if (temperature > 0) {
    for (std::size_t i = 0; i < logits.size(); ++i) {
      const double weight = std::exp(
          (static_cast<double>(logits[i]) - static_cast<double>(logits[best])) /
          temperature);
      // Not-a-number never becomes a candidate.
      if (weight > 0) {
        candidates.push_back({logits[i], static_cast<std::int32_t>(i), weight});
      }
    }
  }
  if (candidates.empty()) {
    candidates.push_back({logits[best], static_cast<std::int32_t>(best), 1});
  }
}

void SortByLogit(Candidates& candidates) {
  std::sort(candidates.begin(), candidates.end(),
            [](const auto& a, const auto& b) {
              return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
            });
}

void KeepTopK(int k, Candidates& candidates) {
  const auto n = static_cast<std::size_t>(k);
  if (n > 0 && n < candidates.size()) candidates.resize(n);
}

void KeepTopP(double p, Candidates& candidates) {
  if (p >= 1) return;
  const double total = Sum(candidates);
  double sum = 0;
  std::size_t n = 0;
  while (n < candidates.size() && sum < p * total) {
    sum += candidates[n++].weight;
  }
  candidates.resize(std::max<std::size_t>(1, n));
}

void KeepMinP(double p, Candidates& candidates) {
  if (p <= 0) return;
  const double floor = p * candidates.front().weight;
  std::size_t n = 1;
  while (n < candidates.size() && candidates[n].weight >= floor) ++n;
  candidates.resize(n);
}

void DropTopChoices(double threshold, Candidates& candidates) {
  const double floor = threshold * Sum(candidates);
  std::size_t n = 0;  // of them at least the threshold
  while (n < candidates.size() && candidates[n].weight >= floor) ++n;
  if (n < 2) return;
  candidates.erase(candidates.begin(),
                   candidates.begin() + static_cast<std::ptrdiff_t>(n - 1));
}

}  // namespace hearth
