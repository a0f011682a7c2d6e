// GLM 4 (0414), dense: norms around each sublayer, gate and up in one matrix,
// half of every head rotated in neighbouring pairs.
#include "formats/families/all.h"
#include "formats/families/settings.h"

namespace hearth {
namespace {

constexpr NameScheme kHfNames = WithNames(
    kHuggingFaceNames,
    {{Role::kPostAttentionNorm, "model.layers.{}.post_self_attn_layernorm"},
     {Role::kPostMlpNorm, "model.layers.{}.post_mlp_layernorm"}});

void Describe(ModelConfig& config, WeightPlan& plan) {
  config.norm_placement = NormPlacement::kAround;
  plan.fused_gate_up = true;
}

Result<void> FinishGguf(const GgufInput& in) {
  GgufBiases(in);
  in.plan.mlp_bias = false;
  return {};
}

Result<void> FinishHf(const HfInput& in) {
  HEARTH_ASSIGN(in.plan.qkv_bias,
                JsonBool(in.json, "attention_bias", in.label, false));
  return {};
}

}  // namespace

constinit const Family kGlm4Family = {
    .architecture = "glm4",
    .gguf_architecture = "glm4",
    .hf_class = "Glm4ForCausalLM",
    .hf_model_type = "glm4",
    .hf_names = kHfNames,
    .gguf_interleaved = true,
    .hf_head_dim = 128,
    .hf_partial_rotary = true,
    .hf_interleaved = true,
    .hf_bias_not_of_o = true,
    .describe = Describe,
    .finish_gguf = FinishGguf,
    .finish_hf = FinishHf,
};

}  // namespace hearth
