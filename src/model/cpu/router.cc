#include "model/cpu/router.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace hearth {
namespace {

// What an expert counts for the choice. NaNs would break the order's rules;
// they come last here.
std::vector<float> Merits(const Router& router, const float* scores,
                          const float* bias) {
  std::vector<float> merits(scores, scores + router.n_experts);
  for (std::size_t e = 0; e < merits.size(); ++e) {
    float& merit = merits[e];
    if (router.kind == RouterKind::kSigmoid) {
      // exp in double, so that the rounded number is the same in every C
      // library.
      merit = static_cast<float>(1 / (1 + std::exp(-double{merit})));
    }
    if (bias != nullptr) merit += bias[e];
    if (std::isnan(merit)) merit = -INFINITY;
  }
  return merits;
}

// The groups that are not looked into lose their merits.
void KeepBestGroups(const RouterRules& rules, std::vector<float>& merits) {
  const auto n = static_cast<std::size_t>(rules.n_groups);
  const std::size_t size = merits.size() / n;
  std::vector<std::pair<float, std::size_t>> groups;
  for (std::size_t g = 0; g < n; ++g) {
    float best = -INFINITY, second = -INFINITY;
    for (std::size_t i = g * size; i < (g + 1) * size; ++i) {
      if (merits[i] > best) {
        second = best;
        best = merits[i];
      } else if (merits[i] > second) {
        second = merits[i];
      }
    }
    groups.emplace_back(rules.groups_by_two && size > 1 ? best + second : best,
                        g);
  }
  std::stable_sort(
      groups.begin(), groups.end(),
      [](const auto& a, const auto& b) { return a.first > b.first; });
  for (auto i = static_cast<std::size_t>(rules.n_groups_used); i < n; ++i) {
    const std::size_t first = groups[i].second * size;
    std::fill_n(merits.begin() + static_cast<std::ptrdiff_t>(first), size,
                -INFINITY);
  }
}

// Softmax of the scores, over all or over those that are chosen; sigmoids.
std::vector<double> Weights(const Router& router, const float* scores,
                            const int* chosen) {
  const auto n_used = static_cast<std::size_t>(router.n_used);
  std::vector<double> weights(n_used);
  if (router.kind == RouterKind::kSigmoid) {
    double total = 0;
    for (std::size_t i = 0; i < n_used; ++i) {
      weights[i] = 1 / (1 + std::exp(-double{scores[chosen[i]]}));
      total += weights[i];
    }
    if (router.rules.normalize) {
      for (double& w : weights) w /= total + 1e-20;
    }
    return weights;
  }
  double largest = scores[chosen[0]], total = 0;
  for (int i = 0; i < router.n_used; ++i) {
    largest = std::max(largest, double{scores[chosen[i]]});
  }
  if (router.kind == RouterKind::kSoftmaxOfAll) {
    for (int e = 0; e < router.n_experts; ++e) {
      total += std::exp(scores[e] - largest);
    }
  } else {
    for (int i = 0; i < router.n_used; ++i) {
      total += std::exp(scores[chosen[i]] - largest);
    }
  }
  for (std::size_t i = 0; i < n_used; ++i) {
    weights[i] = std::exp(scores[chosen[i]] - largest) / total;
  }
  return weights;
}

}  // namespace

void ChooseExperts(const Router& router, const float* scores, const float* bias,
                   int* chosen, float* weights) {
  std::vector<float> merits = Merits(router, scores, bias);
  if (router.rules.n_groups_used < router.rules.n_groups) {
    KeepBestGroups(router.rules, merits);
  }
  std::vector<int> order(merits.size());
  for (std::size_t e = 0; e < order.size(); ++e) order[e] = static_cast<int>(e);
  const auto merit = [&](int e) { return merits[static_cast<std::size_t>(e)]; };
  std::partial_sort(order.begin(), order.begin() + router.n_used, order.end(),
                    [&](int a, int b) {
                      return merit(a) != merit(b) ? merit(a) > merit(b) : a < b;
                    });
  std::sort(order.begin(), order.begin() + router.n_used);
  std::copy_n(order.begin(), router.n_used, chosen);
  const std::vector<double> exact = Weights(router, scores, chosen);
  for (std::size_t i = 0; i < exact.size(); ++i) {
    weights[i] = static_cast<float>(exact[i] * double{router.rules.scale});
  }
}

}  // namespace hearth
