// MiniMax M2: experts in every layer, chosen by sigmoids and a bias; a norm
// over all query and over all key heads; half of every head rotated.
#include "formats/families/all.h"
#include "formats/families/moe/moe.h"
#include "formats/families/settings.h"
#include "formats/rope_scaling.h"

namespace hearth {
namespace {

constexpr NameScheme kGgufNamesM2 = WithGgufMoe(kGgufNames);

constexpr NameScheme kHfNames = WithNames(
    kHuggingFaceNames,
    {{Role::kRouter, "model.layers.{}.block_sparse_moe.gate"},
     {Role::kRouterBias,
      "model.layers.{}.block_sparse_moe.e_score_correction_bias#"},
     {Role::kExpertGate, "model.layers.{}.block_sparse_moe.experts.{}.w1"},
     {Role::kExpertUp, "model.layers.{}.block_sparse_moe.experts.{}.w3"},
     {Role::kExpertDown, "model.layers.{}.block_sparse_moe.experts.{}.w2"}});

void Describe(ModelConfig& config, WeightPlan&) {
  config.qk_norm = QkNorm::kWhole;
  config.router = RouterKind::kSigmoid;
  config.router_rules.bias = true;
}

Result<void> FinishGguf(const GgufInput& in) {
  HEARTH_TRY(GgufExperts(in));
  HEARTH_ASSIGN(const int gating, GgufSize(in, "expert_gating_func", 2));
  if (gating != 2) {
    return UnsupportedSetting(in.file.label(),
                              "expert_gating_func other than sigmoid");
  }
  return GgufRouterRules(in, true);
}

Result<void> FinishHf(const HfInput& in) {
  ModelConfig& c = in.config;
  HEARTH_ASSIGN(const int rotary, HfSize(in, "rotary_dim", c.rope.rotary_dim));
  c.rope.rotary_dim = rotary;
  HEARTH_TRY(BuildRope(c.rope, in.label));
  HEARTH_ASSIGN(const std::string scoring,
                JsonText(in.json, "scoring_func", in.label, "sigmoid"));
  if (scoring != "sigmoid") {
    return UnsupportedSetting(in.label, "scoring_func other than sigmoid");
  }
  HEARTH_TRY(HfRequire(in, "use_qk_norm", true));
  HEARTH_TRY(HfRequire(in, "attention_bias", false));
  HEARTH_ASSIGN(c.router_rules.bias,
                JsonBool(in.json, "use_routing_bias", in.label, true));
  HEARTH_ASSIGN(c.n_experts, HfSize(in, "num_local_experts"));
  HEARTH_ASSIGN(c.n_experts_used, HfSize(in, "num_experts_per_tok"));
  c.d_expert = c.d_mlp;
  return {};
}

void WriteHf(const ModelConfig& c, Json& json) {
  json["rotary_dim"] = c.rope.rotary_dim;
  json["use_qk_norm"] = true;
  json["scoring_func"] = "sigmoid";
  json["use_routing_bias"] = c.router_rules.bias;
  json["num_local_experts"] = c.n_experts;
  json["num_experts_per_tok"] = c.n_experts_used;
  json["intermediate_size"] = c.d_expert;
}

}  // namespace

constinit const Family kMiniMaxM2Family = {
    .architecture = "minimax-m2",
    .gguf_architecture = "minimax-m2",
    .hf_class = "MiniMaxM2ForCausalLM",
    .hf_model_type = "minimax_m2",
    .gguf_names = kGgufNamesM2,
    .hf_names = kHfNames,
    .hf_head_dim = 128,
    .hf_partial_rotary = true,
    .hf_skipped_prefix = "mtp.",
    .gguf_keys = kMoeGgufKeys,
    .describe = Describe,
    .finish_gguf = FinishGguf,
    .finish_hf = FinishHf,
    .write_hf = WriteHf,
    .write_gguf = WriteGgufRouterRules,
};

}  // namespace hearth
