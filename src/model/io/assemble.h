// From a configuration and a set of named tensors to Weights: the part of
// loading that all file formats share.
#pragma once

#include <string>

#include "hearth/result.h"
#include "model/config.h"
#include "model/io/tensor_names.h"
#include "model/io/tensor_set.h"
#include "model/weights.h"

namespace hearth {

// Which optional tensors the model has. Gate, positions and a head of its own
// follow from the configuration (mlp, learned_positions, tied_head).
struct WeightPlan {
  bool norm_bias = false;
  bool qkv_bias = false;
  bool o_bias = false;
  bool mlp_bias = false;
};

// kCorrupt, naming the field, when a size is not positive, beyond what any
// model needs, or does not go with another.
Result<void> CheckConfig(const ModelConfig& config, const std::string& label);

// "llama-16l-2048d"
std::string NameFromShape(const ModelConfig& config);

// Takes every tensor that `config` and `plan` demand and refuses leftovers.
// REQUIRES: CheckConfig(config) is fine.
Result<Weights> AssembleWeights(const ModelConfig& config,
                                const WeightPlan& plan, const NameScheme& names,
                                TensorSet& tensors);

}  // namespace hearth
