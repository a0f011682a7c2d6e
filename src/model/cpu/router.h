// Which experts a token goes through, and with which weights.
#pragma once

#include "model/config.h"

namespace hearth {

struct Router {
  RouterKind kind = RouterKind::kSoftmaxOfAll;
  RouterRules rules;
  int n_experts = 0, n_used = 0;
};

// From the router's `scores`: the n_used experts that count most (of equal ones
// the first) and their weights, by rising index. Fills chosen[n_used] and
// weights[n_used]. bias: [n_experts], of the choice alone, or null.
void ChooseExperts(const Router& router, const float* scores, const float* bias,
                   int* chosen, float* weights);

}  // namespace hearth
