// GLM 4.5 and Air: experts chosen by sigmoids and a bias, a dense lead, a
// shared expert; half of every head rotated.
#include "formats/families/all.h"
#include "formats/families/moe/moe.h"
#include "formats/families/settings.h"

namespace hearth {
namespace {

constexpr NameScheme kGgufNamesGlm = WithGgufMoe(
    WithNames(kGgufNames, {{Role::kMlpNorm, "blk.{}.post_attention_norm"}}));
constexpr NameScheme kHfNames = WithHfMoe(kHuggingFaceNames);

void Describe(ModelConfig& config, WeightPlan&) {
  config.router = RouterKind::kSigmoid;
  config.router_rules.bias = true;
  config.router_rules.groups_by_two = true;
}

Result<void> FinishGguf(const GgufInput& in) {
  GgufBiases(in);
  in.plan.mlp_bias = false;
  HEARTH_TRY(GgufLeadAndExperts(in, kGgufNamesGlm));
  in.config.router_rules.bias = true;
  if (in.tensors.Has(WeightName(kGgufNamesGlm, Role::kQNorm))) {
    in.config.qk_norm = QkNorm::kPerHead;
  }
  HEARTH_ASSIGN(const int gating, GgufSize(in, "expert_gating_func", 2));
  if (gating != 2 && gating != 0) {
    return UnsupportedSetting(in.file.label(),
                              "expert_gating_func other than sigmoid");
  }
  return GgufRouterRules(in, true);
}

Result<void> FinishHf(const HfInput& in) {
  HEARTH_ASSIGN(in.plan.qkv_bias,
                JsonBool(in.json, "attention_bias", in.label, false));
  HEARTH_ASSIGN(const bool norms,
                JsonBool(in.json, "use_qk_norm", in.label, false));
  if (norms) in.config.qk_norm = QkNorm::kPerHead;
  return HfLeadAndExperts(in);
}

void WriteHf(const ModelConfig& c, Json& json) {
  json["use_qk_norm"] = c.qk_norm == QkNorm::kPerHead;
  WriteHfLeadAndExperts(c, json);
}

}  // namespace

constinit const Family kGlm4MoeFamily = {
    .architecture = "glm4moe",
    .gguf_architecture = "glm4moe",
    .hf_class = "Glm4MoeForCausalLM",
    .hf_model_type = "glm4_moe",
    .gguf_names = kGgufNamesGlm,
    .hf_names = kHfNames,
    .hf_head_dim = 128,
    .hf_partial_rotary = true,
    .hf_bias_not_of_o = true,
    .gguf_keys = kMoeGgufKeys,
    .describe = Describe,
    .finish_gguf = FinishGguf,
    .finish_hf = FinishHf,
    .adapt_hf = AdaptHfExperts,
    .write_hf = WriteHf,
    .write_gguf = WriteGgufLeadAndExperts,
};

}  // namespace hearth
