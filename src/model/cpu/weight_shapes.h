// The matrices of a model that ask for different memory to multiply with: one
// of each number format and shape.
#pragma once

#include <cstdint>
#include <vector>

#include "model/weights.h"

namespace hearth {

// The most that one linear layer's adapters have.
struct LowRanks {
  std::int64_t n = 0;      // pairs of matrices; 0: there are no adapters
  std::int64_t ranks = 0;  // of all of them together
};

struct WeightShapes {
  std::vector<WeightMatrix> matrices;
  LowRanks low_ranks;
};

WeightShapes DistinctShapes(const Weights& weights);

}  // namespace hearth
