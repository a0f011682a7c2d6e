// GPT-2: layer norms, learned positions, every linear layer stored transposed
// (in GGUF not), q, k and v in one matrix.
#include "formats/describe.h"
#include "formats/families/all.h"
#include "formats/families/settings.h"

namespace hearth {
namespace {

constexpr NameScheme kHfNames =
    WithNames({}, {{Role::kTokenEmbedding, "transformer.wte"},
                   {Role::kPositionEmbedding, "transformer.wpe"},
                   {Role::kFinalNorm, "transformer.ln_f"},
                   {Role::kHead, "lm_head"},
                   {Role::kAttentionNorm, "transformer.h.{}.ln_1"},
                   {Role::kQkv, "transformer.h.{}.attn.c_attn"},
                   {Role::kO, "transformer.h.{}.attn.c_proj"},
                   {Role::kMlpNorm, "transformer.h.{}.ln_2"},
                   {Role::kUp, "transformer.h.{}.mlp.c_fc"},
                   {Role::kDown, "transformer.h.{}.mlp.c_proj"}});

constexpr HfKeys kHfKeys = {.d_model = "n_embd",
                            .n_layers = "n_layer",
                            .n_heads = "n_head",
                            .d_mlp = "n_inner",
                            .context = "n_positions",
                            .norm_eps = "layer_norm_epsilon",
                            .activation = "activation_function"};

void Describe(ModelConfig& config, WeightPlan& plan) {
  config.norm = NormKind::kLayerNorm;
  config.learned_positions = true;
  config.rope = {};
  plan.norm_bias = plan.qkv_bias = plan.o_bias = plan.mlp_bias = true;
  plan.fused_qkv = true;
}

Result<void> FinishHf(const HfInput& in) {
  in.plan.transposed = true;
  HEARTH_ASSIGN(const std::string activation,
                JsonText(in.json, kHfKeys.activation, in.label, "gelu_new"));
  if (activation == "gelu") {
    in.config.mlp = MlpKind::kGeluErf;
  } else if (activation != "gelu_new" && activation != "gelu_pytorch_tanh") {
    return UnsupportedSetting(
        in.label, std::string(kHfKeys.activation) + " " + Quoted(activation) +
                      " is not supported, only gelu_new and gelu");
  }
  HEARTH_TRY(HfRequire(in, "scale_attn_weights", true));
  HEARTH_TRY(HfRequire(in, "scale_attn_by_inverse_layer_idx", false));
  return HfRequire(in, "add_cross_attention", false);
}

}  // namespace

constinit const Family kGpt2Family = {
    .architecture = "gpt2",
    .gguf_architecture = "gpt2",
    .hf_class = "GPT2LMHeadModel",
    .hf_model_type = "gpt2",
    .hf_names = kHfNames,
    .hf_keys = kHfKeys,
    .mlp = MlpKind::kGeluTanh,
    .hf_tied = true,
    .describe = Describe,
    .finish_hf = FinishHf,
};

}  // namespace hearth
