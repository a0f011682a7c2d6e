// The matrices of a model that ask for different memory to multiply with: one
// of each number format and shape.
#pragma once

#include <vector>

#include "model/weights.h"

namespace hearth {

std::vector<WeightMatrix> DistinctShapes(const Weights& weights);

}  // namespace hearth
