// Mistral: llama without biases, with one window for all layers (or none). Its
// GGUF files call themselves llama.
#include "formats/families/all.h"
#include "formats/families/settings.h"

namespace hearth {
namespace {

Result<void> FinishHf(const HfInput& in) {
  HEARTH_ASSIGN(const int window, HfSize(in, "sliding_window", 0));
  return HfWindows(in, window, [](int) { return true; });
}

}  // namespace

constinit const Family kMistralFamily = {
    .architecture = "mistral",
    .hf_class = "MistralForCausalLM",
    .hf_model_type = "mistral",
    .gguf_interleaved = true,
    .finish_hf = FinishHf,
};

}  // namespace hearth
