// Why a step's numbers came out as NaN or infinite: the weights that hold such
// numbers themselves, or else the layer that made them.
#pragma once

#include <cstdint>
#include <vector>

#include "hearth/result.h"
#include "model/weights.h"

namespace hearth {

// `layer`: the first whose result is not finite, n_layers for the logits.
// `tokens`: of the step. Reads the layer's weights. Always kCorrupt.
Error NonFiniteError(const LoadedModel& model, int layer,
                     const std::vector<std::int32_t>& tokens);

}  // namespace hearth
