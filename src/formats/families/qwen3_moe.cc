// Qwen 3 with experts in every layer.
#include "formats/families/all.h"
#include "formats/families/settings.h"

namespace hearth {
namespace {

constexpr std::string_view kGgufKeys[] = {"expert_count"};

void Describe(ModelConfig& config, WeightPlan&) {
  config.qk_norm = QkNorm::kPerHead;
  config.router = RouterKind::kSoftmaxOfChosen;
}

Result<void> FinishHf(const HfInput& in) {
  HEARTH_TRY(HfOnlyExperts(in));
  HEARTH_TRY(HfAttentionBias(in));
  ModelConfig& c = in.config;
  // transformers 5 renamed it.
  const char* count = JsonFind(in.json, "num_experts") != nullptr
                          ? "num_experts"
                          : "num_local_experts";
  HEARTH_ASSIGN(c.n_experts, HfSize(in, count));
  HEARTH_ASSIGN(c.n_experts_used, HfSize(in, "num_experts_per_tok"));
  HEARTH_ASSIGN(c.d_expert, HfSize(in, "moe_intermediate_size"));
  if (c.n_experts == 0) {
    return UnsupportedSetting(in.label, std::string(count) + " = 0");
  }
  // The class's default is false; every released model says true.
  HEARTH_ASSIGN(const bool normalize,
                JsonBool(in.json, "norm_topk_prob", in.label, false));
  if (!normalize) c.router = RouterKind::kSoftmaxOfAll;
  return HfOptionalWindows(in);
}

void WriteHf(const ModelConfig& config, Json& json) {
  json["num_experts"] = config.n_experts;
  json["num_experts_per_tok"] = config.n_experts_used;
  json["moe_intermediate_size"] = config.d_expert;
  json["norm_topk_prob"] = config.router == RouterKind::kSoftmaxOfChosen;
}

}  // namespace

constinit const Family kQwen3MoeFamily = {
    .architecture = "qwen3moe",
    .gguf_architecture = "qwen3moe",
    .hf_class = "Qwen3MoeForCausalLM",
    .hf_model_type = "qwen3_moe",
    .hf_head_dim = 128,
    .gguf_keys = kGgufKeys,
    .describe = Describe,
    .finish_gguf = GgufExperts,
    .finish_hf = FinishHf,
    .write_hf = WriteHf,
};

}  // namespace hearth
