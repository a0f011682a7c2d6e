// Qwen 2 and 2.5: llama with biases on q, k and v.
#include "formats/families/all.h"
#include "formats/families/settings.h"

namespace hearth {
namespace {

void Describe(ModelConfig&, WeightPlan& plan) { plan.qkv_bias = true; }

}  // namespace

constinit const Family kQwen2Family = {
    .architecture = "qwen2",
    .gguf_architecture = "qwen2",
    .hf_class = "Qwen2ForCausalLM",
    .hf_model_type = "qwen2",
    .describe = Describe,
    .finish_hf = HfOptionalWindows,
};

}  // namespace hearth
