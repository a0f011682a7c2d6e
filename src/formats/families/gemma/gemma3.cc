// Gemma 3, text only: five layers with windows and a rotary base of their own,
// then one that sees all; norms of query and key heads.
#include "formats/families/all.h"
#include "formats/families/gemma/gemma.h"
#include "formats/families/settings.h"

namespace hearth {
namespace {

constexpr int kLayers27b = 62;
constexpr int kWindow = 4096;

constexpr std::string_view kGgufKeys[] = {"attention.sliding_window",
                                          "attn_logit_softcapping",
                                          "final_logit_softcapping"};

Result<void> FinishGguf(const GgufInput& in) {
  HEARTH_TRY(FinishGemmaGguf(in, kLayers27b, 0, 0));
  HEARTH_TRY(GgufWindows(in, kGemmaPeriod, 0));
  HEARTH_TRY(GemmaLocalRopeGguf(in, in.config.rope.rotary_dim));
  UseLocalRopeInWindows(in.config);
  return {};
}

Result<void> FinishHf(const HfInput& in) {
  HEARTH_TRY(FinishGemmaHf(in, 0, 0));
  HEARTH_TRY(HfRopesByKind(in, kGemmaBase, kGemmaLocalBase));
  HEARTH_ASSIGN(const int window, HfSize(in, "sliding_window", kWindow));
  HEARTH_ASSIGN(const int old_period,
                HfSize(in, "_sliding_window_pattern", kGemmaPeriod));
  HEARTH_ASSIGN(const int period,
                HfSize(in, "sliding_window_pattern", old_period));
  if (period < 1) {
    return {Code::kCorrupt, in.label + ": sliding_window_pattern is 0"};
  }
  HEARTH_TRY(HfWindows(
      in, window, [period](int layer) { return (layer + 1) % period != 0; }));
  UseLocalRopeInWindows(in.config);
  return {};
}

}  // namespace

constinit const Family kGemma3Family = {
    .architecture = "gemma3",
    .gguf_architecture = "gemma3",
    .hf_class = "Gemma3ForCausalLM",
    .hf_model_type = "gemma3_text",
    .hf_names = kGemmaHfNames,
    .hf_keys = kGemmaHfKeys,
    .mlp = MlpKind::kGatedGeluTanh,
    .hf_tied = true,
    .hf_head_dim = 256,
    .hf_rope_per_layer = true,
    .gguf_keys = kGgufKeys,
    .gguf_window_period = kGemmaPeriod,
    .describe = DescribeGemmaWithHeadNorms,
    .finish_gguf = FinishGguf,
    .finish_hf = FinishHf,
    .write_hf = WriteGemmaHf,
};

}  // namespace hearth
