// What LFM2 has with and without experts.
#pragma once

#include "formats/families.h"

namespace hearth {

inline constexpr NameScheme kLfm2GgufNames =
    WithNames(kGgufNames, {{Role::kFinalNorm, "token_embd_norm"},
                           {Role::kShortConvIn, "blk.{}.shortconv.in_proj"},
                           {Role::kShortConvTaps, "blk.{}.shortconv.conv"},
                           {Role::kShortConvOut, "blk.{}.shortconv.out_proj"}});

inline constexpr NameScheme kLfm2HfNames =
    WithNames(kHuggingFaceNames,
              {{Role::kFinalNorm, "model.embedding_norm"},
               {Role::kAttentionNorm, "model.layers.{}.operator_norm"},
               {Role::kMlpNorm, "model.layers.{}.ffn_norm"},
               {Role::kO, "model.layers.{}.self_attn.out_proj"},
               {Role::kQNorm, "model.layers.{}.self_attn.q_layernorm"},
               {Role::kKNorm, "model.layers.{}.self_attn.k_layernorm"},
               {Role::kGate, "model.layers.{}.feed_forward.w1"},
               {Role::kUp, "model.layers.{}.feed_forward.w3"},
               {Role::kDown, "model.layers.{}.feed_forward.w2"},
               {Role::kShortConvIn, "model.layers.{}.conv.in_proj"},
               {Role::kShortConvTaps, "model.layers.{}.conv.conv"},
               {Role::kShortConvOut, "model.layers.{}.conv.out_proj"}});

void DescribeLfm2(ModelConfig& config, WeightPlan& plan);
// Which layers convolve, and how far.
Result<void> GgufLfm2Mixers(const GgufInput& in);
Result<void> HfLfm2Mixers(const HfInput& in);
void WriteHfLfm2Mixers(const ModelConfig& config, Json& json);
void WriteGgufLfm2(const ModelConfig& config, const GgufKeyWriter& key);

}  // namespace hearth
