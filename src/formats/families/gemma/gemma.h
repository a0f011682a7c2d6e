// What Gemma 2, 3 and 4 share.
#pragma once

#include "formats/families.h"

namespace hearth {

inline constexpr NameScheme kGemmaHfNames = WithNames(
    kHuggingFaceNames,
    {{Role::kPostAttentionNorm, "model.layers.{}.post_attention_layernorm"},
     {Role::kMlpNorm, "model.layers.{}.pre_feedforward_layernorm"},
     {Role::kPostMlpNorm, "model.layers.{}.post_feedforward_layernorm"}});

inline constexpr HfKeys kGemmaHfKeys = {.activation = "hidden_activation"};

// Norms around both sublayers, embeddings times sqrt(width).
void DescribeGemma(ModelConfig& config, WeightPlan& plan);
// Scores are scaled by 1 / sqrt(query_pre_attn_scalar); norms are 1 + w; both
// soft caps (their defaults differ).
Result<void> FinishGemmaHf(const HfInput& in, double attention_cap,
                           double logit_cap);
// GGUF stores 1 + w. The scale of scores is not in the file: that of the
// largest model (`n_layers_27b`) follows from the width, the others' from the
// head size.
Result<void> FinishGemmaGguf(const GgufInput& in, int n_layers_27b,
                             double attention_cap, double logit_cap);

// Gemma 3 and 4: every sixth layer sees all, those between have a window and
// turn by frequencies of a base of their own.
inline constexpr int kGemmaPeriod = 6;
inline constexpr double kGemmaBase = 1e6;
inline constexpr double kGemmaLocalBase = 1e4;
inline bool GemmaHasWindow(int layer) {
  return (layer + 1) % kGemmaPeriod != 0;
}
// DescribeGemma, and norms of query and key heads.
void DescribeGemmaWithHeadNorms(ModelConfig& config, WeightPlan& plan);
Result<void> GemmaLocalRopeGguf(const GgufInput& in, int rotary_dim);

// The members of config.json that FinishGemmaHf reads.
void WriteGemmaHf(const ModelConfig& config, Json& json);

}  // namespace hearth
