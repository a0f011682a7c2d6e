// What the families with Mamba-2 mixers share.
#pragma once

#include "formats/families.h"

namespace hearth {

// `base` with GGUF's names of a Mamba-2 mixer.
constexpr NameScheme WithGgufMamba2(NameScheme base) {
  return WithNames(base, {{Role::kMambaIn, "blk.{}.ssm_in"},
                          {Role::kMambaTaps, "blk.{}.ssm_conv1d"},
                          {Role::kMambaScale, "blk.{}.ssm_a#"},
                          {Role::kMambaStep, "blk.{}.ssm_dt"},
                          {Role::kMambaSkip, "blk.{}.ssm_d#"},
                          {Role::kMambaNorm, "blk.{}.ssm_norm"},
                          {Role::kMambaOut, "blk.{}.ssm_out"},
                          {Role::kSharedGate, "blk.{}.ffn_gate_shexp"},
                          {Role::kSharedUp, "blk.{}.ffn_up_shexp"},
                          {Role::kSharedDown, "blk.{}.ffn_down_shexp"},
                          {Role::kRouterBias, "blk.{}.exp_probs_b.bias#"}});
}

// The ssm.* keys. Biases and norms: where the file has them.
Result<void> GgufMamba2(const GgufInput& in, const NameScheme& names);
void WriteGgufMamba2(const ModelConfig& config, const GgufKeyWriter& key);

// Members of config.json.
struct HfMamba2Keys {
  const char *n_heads, *head_dim, *n_groups, *n_state, *taps, *conv_bias;
};
Result<void> HfMamba2(const HfInput& in, const HfMamba2Keys& keys);
void WriteHfMamba2(const ModelConfig& config, const HfMamba2Keys& keys,
                   Json& json);

inline constexpr HfMamba2Keys kMambaHfKeys = {
    "mamba_n_heads", "mamba_d_head", "mamba_n_groups",
    "mamba_d_state", "mamba_d_conv", "mamba_conv_bias"};

}  // namespace hearth
