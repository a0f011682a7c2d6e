// Qwen 3: a norm of every query and key head before the rotation.
#include "formats/families/all.h"
#include "formats/families/settings.h"

namespace hearth {
namespace {

void Describe(ModelConfig& config, WeightPlan&) {
  config.qk_norm = QkNorm::kPerHead;
}

Result<void> FinishHf(const HfInput& in) {
  HEARTH_TRY(HfAttentionBias(in));
  return HfOptionalWindows(in);
}

// The text part of Qwen 3-VL. Tokens of an image have three positions; those of
// text are equal, which makes the rotation the usual one.
Result<void> FinishVlHf(const HfInput& in) {
  in.config.architecture = "qwen3";
  return FinishHf(in);
}

Result<void> FinishVlGguf(const GgufInput& in) {
  in.config.architecture = "qwen3";
  return {};
}

}  // namespace

constinit const Family kQwen3Family = {
    .architecture = "qwen3",
    .gguf_architecture = "qwen3",
    .hf_class = "Qwen3ForCausalLM",
    .hf_model_type = "qwen3",
    .hf_head_dim = 128,
    .describe = Describe,
    .finish_hf = FinishHf,
};

constinit const Family kQwen3VlFamily = {
    .architecture = "qwen3vl",
    .gguf_architecture = "qwen3vl",
    .hf_class = "Qwen3VLForConditionalGeneration",
    .hf_model_type = "qwen3_vl_text",
    .hf_head_dim = 128,
    .describe = Describe,
    .finish_gguf = FinishVlGguf,
    .finish_hf = FinishVlHf,
};

}  // namespace hearth
