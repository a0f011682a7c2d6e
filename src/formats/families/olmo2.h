// What OLMo 2 and 3 have in common.
#pragma once

#include "formats/families.h"

namespace hearth {

inline constexpr NameScheme kOlmo2HfNames = WithNames(
    kHuggingFaceNames,
    {{Role::kPostAttentionNorm, "model.layers.{}.post_attention_layernorm"},
     {Role::kPostMlpNorm, "model.layers.{}.post_feedforward_layernorm"}});

// Of models with windows, every so many-th layer has none.
inline constexpr int kOlmoWindowPeriod = 4;

void DescribeOlmo2(ModelConfig& config, WeightPlan& plan);

}  // namespace hearth
