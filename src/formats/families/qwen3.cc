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

}  // namespace hearth
