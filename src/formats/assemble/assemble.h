// From a configuration and a set of named tensors to Weights: the part of
// loading that all file formats share.
#pragma once

#include <string>

#include "formats/tensors/tensor_names.h"
#include "formats/tensors/tensor_set.h"
#include "hearth/result.h"
#include "model/config.h"
#include "model/weights.h"

namespace hearth {

// Which tensors the file has where the configuration leaves a choice. Norm
// placement, gates, sinks, experts, positions and a head of its own follow from
// the configuration.
struct WeightPlan {
  bool norm_bias = false;
  bool qkv_bias = false;
  bool o_bias = false;
  bool mlp_bias = false;  // of experts too
  bool router_bias = false;
  bool fused_qkv = false;             // Role::kQkv
  bool fused_gate_up = false;         // Role::kGateUp
  bool fused_expert_gate_up = false;  // Role::kExpertGateUp
  bool interleaved_gate_up = false;   // in both
  bool fused_shared_gate_up = false;  // Role::kSharedGateUp
  bool transposed = false;            // linear layers are stored [n_in, n_out]
  bool experts_transposed = false;    // those of experts
  float norm_offset = 0;  // added to every norm weight: 1 for gemma's 1 + w
  bool fused_delta_net = false;    // Role::kDeltaQkvGate
  bool fused_delta_rates = false;  // Role::kDeltaRateDecay
  bool decay_is_log = false;       // Role::kDeltaScale, kMambaScale hold A_log
  bool conv_bias = false;          // of Mamba-2's convolutions
  bool layer_scale = false;        // Role::kLayerScale
  bool fused_latent = false;       // Role::kKvUp: keys and values of all heads
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
