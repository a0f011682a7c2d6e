// gpt-oss: experts with biases and a clamped activation, a learned sink in
// every head, windows in every other layer, yarn without whole indices.
#include "formats/families/all.h"
#include "formats/families/settings.h"

namespace hearth {
namespace {

constexpr NameScheme kGptOssGgufNames =
    WithNames(kGgufNames, {{Role::kMlpNorm, "blk.{}.post_attention_norm"}});

constexpr NameScheme kHfNames = WithNames(
    kHuggingFaceNames,
    {{Role::kRouter, "model.layers.{}.mlp.router"},
     {Role::kExpertGateUp, "model.layers.{}.mlp.experts.gate_up_proj#"},
     {Role::kExpertDown, "model.layers.{}.mlp.experts.down_proj#"}});

constexpr std::string_view kGgufKeys[] = {"attention.sliding_window",
                                          "expert_count"};

constexpr int kWindow = 128;
constexpr float kLimit = 7.0f;  // of MlpKind::kClampedSwiglu

void Describe(ModelConfig& config, WeightPlan& plan) {
  config.attention_sinks = true;
  config.router = RouterKind::kSoftmaxOfChosen;
  // No GGUF key says so; config.json does.
  config.rope.scaling.truncate = false;
  plan.qkv_bias = plan.o_bias = plan.mlp_bias = plan.router_bias = true;
}

Result<void> FinishGguf(const GgufInput& in) {
  HEARTH_TRY(GgufExperts(in));
  return GgufWindows(in, 2, kWindow);
}

Result<void> FinishHf(const HfInput& in) {
  ModelConfig& c = in.config;
  in.plan.fused_expert_gate_up = in.plan.interleaved_gate_up = true;
  in.plan.experts_transposed = true;
  HEARTH_TRY(HfRequire(in, "attention_bias", true));
  HEARTH_ASSIGN(c.n_experts, HfSize(in, "num_local_experts", 128));
  HEARTH_ASSIGN(c.n_experts_used, HfSize(in, "num_experts_per_tok", 4));
  c.d_expert = c.d_mlp;
  HEARTH_ASSIGN(const float limit, HfScale(in, "swiglu_limit", kLimit));
  if (limit != kLimit) {
    return UnsupportedSetting(in.label,
                              "swiglu_limit other than 7 is not supported");
  }
  HEARTH_ASSIGN(const int window, HfSize(in, "sliding_window", kWindow));
  return HfWindows(in, window, [](int layer) { return layer % 2 == 0; });
}

void WriteHf(const ModelConfig& config, Json& json) {
  json["num_local_experts"] = config.n_experts;
  json["num_experts_per_tok"] = config.n_experts_used;
  json["swiglu_limit"] = kLimit;
}

}  // namespace

constinit const Family kGptOssFamily = {
    .architecture = "gpt-oss",
    .gguf_architecture = "gpt-oss",
    .hf_class = "GptOssForCausalLM",
    .hf_model_type = "gpt_oss",
    .gguf_names = kGptOssGgufNames,
    .hf_names = kHfNames,
    .mlp = MlpKind::kClampedSwiglu,
    .hf_head_dim = 64,
    .hf_mxfp4 = true,
    .gguf_keys = kGgufKeys,
    .gguf_window_period = 2,
    .describe = Describe,
    .finish_gguf = FinishGguf,
    .finish_hf = FinishHf,
    .write_hf = WriteHf,
};

}  // namespace hearth
