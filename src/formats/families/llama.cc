// Llama 2 and 3, and whatever else has their forward pass.
#include "formats/families/all.h"
#include "formats/families/settings.h"

namespace hearth {
namespace {

constexpr std::string_view kGgufKeys[] = {"attention.sliding_window"};

// Mistral is a llama in GGUF, and a window is that of all layers.
Result<void> FinishGguf(const GgufInput& in) {
  GgufBiases(in);
  return GgufWindows(in, 0, 0);
}

Result<void> FinishHf(const HfInput& in) {
  HEARTH_TRY(HfAttentionBias(in));
  return HfMlpBias(in);
}

}  // namespace

constinit const Family kLlamaFamily = {
    .architecture = "llama",
    .gguf_architecture = "llama",
    .hf_class = "LlamaForCausalLM",
    .hf_model_type = "llama",
    .gguf_interleaved = true,
    .gguf_keys = kGgufKeys,
    .finish_gguf = FinishGguf,
    .finish_hf = FinishHf,
};

}  // namespace hearth
