// What Qwen 3.5 and later, and Qwen 3-Next, have in common: three of four
// layers are gated delta nets, the fourth has gated attention.
#pragma once

#include "formats/families.h"

namespace hearth {

inline constexpr NameScheme kQwen35GgufNames = WithNames(
    kGgufNames, {{Role::kMlpNorm, "blk.{}.post_attention_norm"},
                 {Role::kExpertGateUp, "blk.{}.ffn_gate_up_exps"},
                 {Role::kSharedGate, "blk.{}.ffn_gate_shexp"},
                 {Role::kSharedUp, "blk.{}.ffn_up_shexp"},
                 {Role::kSharedDown, "blk.{}.ffn_down_shexp"},
                 {Role::kSharedExpertGate, "blk.{}.ffn_gate_inp_shexp"},
                 {Role::kDeltaQkv, "blk.{}.attn_qkv"},
                 {Role::kDeltaGate, "blk.{}.attn_gate"},
                 {Role::kDeltaQkvGate, "blk.{}.ssm_in"},
                 {Role::kDeltaRate, "blk.{}.ssm_beta"},
                 {Role::kDeltaDecay, "blk.{}.ssm_alpha"},
                 {Role::kDeltaRateDecay, "blk.{}.ssm_ba"},
                 {Role::kDeltaTaps, "blk.{}.ssm_conv1d"},
                 {Role::kDeltaScale, "blk.{}.ssm_a#"},
                 {Role::kDeltaBias, "blk.{}.ssm_dt"},
                 {Role::kDeltaNorm, "blk.{}.ssm_norm"},
                 {Role::kDeltaOut, "blk.{}.ssm_out"}});

inline constexpr NameScheme kQwen35HfNames = WithNames(
    kHuggingFaceNames,
    {{Role::kSharedGate, "model.layers.{}.mlp.shared_expert.gate_proj"},
     {Role::kSharedUp, "model.layers.{}.mlp.shared_expert.up_proj"},
     {Role::kSharedDown, "model.layers.{}.mlp.shared_expert.down_proj"},
     {Role::kSharedExpertGate, "model.layers.{}.mlp.shared_expert_gate"},
     {Role::kDeltaQkv, "model.layers.{}.linear_attn.in_proj_qkv"},
     {Role::kDeltaGate, "model.layers.{}.linear_attn.in_proj_z"},
     {Role::kDeltaQkvGate, "model.layers.{}.linear_attn.in_proj_qkvz"},
     {Role::kDeltaRate, "model.layers.{}.linear_attn.in_proj_b"},
     {Role::kDeltaDecay, "model.layers.{}.linear_attn.in_proj_a"},
     {Role::kDeltaRateDecay, "model.layers.{}.linear_attn.in_proj_ba"},
     {Role::kDeltaTaps, "model.layers.{}.linear_attn.conv1d"},
     {Role::kDeltaScale, "model.layers.{}.linear_attn.A_log#"},
     {Role::kDeltaBias, "model.layers.{}.linear_attn.dt#"},
     {Role::kDeltaNorm, "model.layers.{}.linear_attn.norm"},
     {Role::kDeltaOut, "model.layers.{}.linear_attn.out_proj"}});

}  // namespace hearth
