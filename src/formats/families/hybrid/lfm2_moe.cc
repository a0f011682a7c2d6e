// LFM2 with experts, chosen by sigmoids and a bias, behind a dense lead.
#include "formats/families/all.h"
#include "formats/families/hybrid/lfm2.h"
#include "formats/families/moe/moe.h"
#include "formats/families/settings.h"

namespace hearth {
namespace {

constexpr NameScheme kGgufNamesMoe = WithGgufMoe(kLfm2GgufNames);

constexpr NameScheme kHfNames = WithNames(
    kLfm2HfNames,
    {{Role::kRouter, "model.layers.{}.feed_forward.gate"},
     {Role::kRouterBias, "model.layers.{}.feed_forward.expert_bias#"},
     {Role::kExpertGate, "model.layers.{}.feed_forward.experts.{}.w1"},
     {Role::kExpertUp, "model.layers.{}.feed_forward.experts.{}.w3"},
     {Role::kExpertDown, "model.layers.{}.feed_forward.experts.{}.w2"}});

constexpr std::string_view kGgufKeys[] = {"attention.head_count_kv",
                                          "expert_count", "expert_shared_count",
                                          "expert_weights_scale"};

void Describe(ModelConfig& config, WeightPlan& plan) {
  DescribeLfm2(config, plan);
  config.router = RouterKind::kSigmoid;
  config.router_rules.bias = true;
}

Result<void> FinishGguf(const GgufInput& in) {
  HEARTH_TRY(GgufLfm2Mixers(in));
  HEARTH_TRY(GgufLeadAndExperts(in, kGgufNamesMoe));
  return GgufRouterRules(in, true);
}

void WriteGguf(const ModelConfig& config, const GgufKeyWriter& key) {
  WriteGgufLfm2(config, key);
  WriteGgufLeadAndExperts(config, key);
}

Result<void> FinishHf(const HfInput& in) {
  ModelConfig& c = in.config;
  HEARTH_TRY(HfLfm2Mixers(in));
  HEARTH_ASSIGN(c.n_experts, HfSize(in, "num_experts"));
  HEARTH_ASSIGN(c.n_experts_used, HfSize(in, "num_experts_per_tok"));
  HEARTH_ASSIGN(c.d_expert, HfSize(in, "moe_intermediate_size"));
  HEARTH_ASSIGN(const int lead, HfSize(in, "num_dense_layers", 0));
  SetDenseLead(c, lead);
  HEARTH_TRY(HfRouterRules(in));
  HEARTH_ASSIGN(c.router_rules.bias,
                JsonBool(in.json, "use_expert_bias", in.label, true));
  return {};
}

void WriteHf(const ModelConfig& c, Json& json) {
  WriteHfLfm2Mixers(c, json);
  json["num_experts"] = c.n_experts;
  json["num_experts_per_tok"] = c.n_experts_used;
  json["moe_intermediate_size"] = c.d_expert;
  json["num_dense_layers"] = DenseLeadOf(c);
  json["use_expert_bias"] = c.router_rules.bias;
  WriteHfRouterRules(c, json);
}

// Some files have each expert's matrices, others one tensor of all.
void AdaptHf(const TensorSet& tensors, WeightPlan& plan, NameScheme& names) {
  for (const SourceTensor& tensor : tensors.tensors()) {
    if (!tensor.name.ends_with(".experts.gate_up_proj")) continue;
    names = WithNames(names,
                      {{Role::kExpertGateUp,
                        "model.layers.{}.feed_forward.experts.gate_up_proj#"},
                       {Role::kExpertDown,
                        "model.layers.{}.feed_forward.experts.down_proj#"}});
    plan.fused_expert_gate_up = true;
    return;
  }
}

}  // namespace

constinit const Family kLfm2MoeFamily = {
    .architecture = "lfm2moe",
    .gguf_architecture = "lfm2moe",
    .hf_class = "Lfm2MoeForCausalLM",
    .hf_model_type = "lfm2_moe",
    .gguf_names = kGgufNamesMoe,
    .hf_names = kHfNames,
    .hf_keys = {.norm_eps = "norm_eps"},
    .hf_tied = true,
    .gguf_keys = kGgufKeys,
    .describe = Describe,
    .finish_gguf = FinishGguf,
    .finish_hf = FinishHf,
    .adapt_hf = AdaptHf,
    .write_hf = WriteHf,
    .write_gguf = WriteGguf,
};

}  // namespace hearth
