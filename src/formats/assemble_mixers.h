// The weights of layers that mix tokens with something else than attention.
#pragma once

#include <string>

#include "formats/assemble.h"
#include "formats/tensor_names.h"
#include "formats/tensor_set.h"
#include "hearth/result.h"
#include "model/config.h"
#include "model/weights.h"

namespace hearth {

// The part of CheckConfig that is about them. kCorrupt.
Result<void> CheckMixers(const ModelConfig& config, const std::string& label);

// Errors as TensorSet's. REQUIRES: CheckConfig(config) is fine.
Result<ShortConvWeights> AssembleShortConv(const ModelConfig& config,
                                           const NameScheme& names, int layer,
                                           TensorSet& tensors);
Result<DeltaNetWeights> AssembleDeltaNet(const ModelConfig& config,
                                         const WeightPlan& plan,
                                         const NameScheme& names, int layer,
                                         TensorSet& tensors);

}  // namespace hearth
