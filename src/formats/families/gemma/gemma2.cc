// Gemma 2: windows in every other layer, soft caps of scores and logits.
#include "formats/families/all.h"
#include "formats/families/gemma/gemma.h"
#include "formats/families/settings.h"

namespace hearth {
namespace {

constexpr double kAttentionCap = 50;
constexpr double kLogitCap = 30;
constexpr int kWindow = 4096;
constexpr int kLayers27b = 46;

constexpr std::string_view kGgufKeys[] = {"attention.sliding_window",
                                          "attn_logit_softcapping",
                                          "final_logit_softcapping"};

Result<void> FinishGguf(const GgufInput& in) {
  HEARTH_TRY(FinishGemmaGguf(in, kLayers27b, kAttentionCap, kLogitCap));
  return GgufWindows(in, 2, kWindow);
}

Result<void> FinishHf(const HfInput& in) {
  HEARTH_TRY(FinishGemmaHf(in, kAttentionCap, kLogitCap));
  HEARTH_ASSIGN(const int window, HfSize(in, "sliding_window", kWindow));
  return HfWindows(in, window, [](int layer) { return layer % 2 == 0; });
}

}  // namespace

constinit const Family kGemma2Family = {
    .architecture = "gemma2",
    .gguf_architecture = "gemma2",
    .hf_class = "Gemma2ForCausalLM",
    .hf_model_type = "gemma2",
    .hf_names = kGemmaHfNames,
    .hf_keys = kGemmaHfKeys,
    .mlp = MlpKind::kGatedGeluTanh,
    .hf_tied = true,
    .hf_head_dim = 256,
    .gguf_keys = kGgufKeys,
    .gguf_window_period = 2,
    .describe = DescribeGemma,
    .finish_gguf = FinishGguf,
    .finish_hf = FinishHf,
    .write_hf = WriteGemmaHf,
};

}  // namespace hearth
