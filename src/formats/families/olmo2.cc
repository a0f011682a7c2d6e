// OLMo 2: norms after each sublayer only, and one over all heads of q and k.
#include "formats/families/all.h"
#include "formats/families/settings.h"

namespace hearth {
namespace {

constexpr NameScheme kHfNames = WithNames(
    kHuggingFaceNames,
    {{Role::kPostAttentionNorm, "model.layers.{}.post_attention_layernorm"},
     {Role::kPostMlpNorm, "model.layers.{}.post_feedforward_layernorm"}});

void Describe(ModelConfig& config, WeightPlan&) {
  config.norm_placement = NormPlacement::kAfter;
  config.qk_norm = QkNorm::kWhole;
}

}  // namespace

constinit const Family kOlmo2Family = {
    .architecture = "olmo2",
    .gguf_architecture = "olmo2",
    .hf_class = "Olmo2ForCausalLM",
    .hf_model_type = "olmo2",
    .hf_names = kHfNames,
    .describe = Describe,
    .finish_hf = HfAttentionBias,
};

}  // namespace hearth
