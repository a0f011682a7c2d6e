// OLMo 2: norms after each sublayer only, and one over all heads of q and k.
#include "formats/families/olmo2.h"

#include "formats/families/all.h"
#include "formats/families/settings.h"
#include "formats/rope_scaling.h"

namespace hearth {
namespace {

constexpr std::string_view kGgufKeys[] = {"attention.sliding_window"};

// OLMo 3 calls itself olmo2 there, with a window.
Result<void> FinishGguf(const GgufInput& in) {
  ModelConfig& c = in.config;
  HEARTH_TRY(GgufWindows(in, kOlmoWindowPeriod, 0));
  if (c.layer_kinds.empty()) return {};
  HEARTH_TRY(GgufLocalRope(in, c.rope.rotary_dim, c.rope.scaling.base));
  UseLocalRopeInWindows(c);
  return {};
}

}  // namespace

void DescribeOlmo2(ModelConfig& config, WeightPlan&) {
  config.norm_placement = NormPlacement::kAfter;
  config.qk_norm = QkNorm::kWhole;
}

constinit const Family kOlmo2Family = {
    .architecture = "olmo2",
    .gguf_architecture = "olmo2",
    .hf_class = "Olmo2ForCausalLM",
    .hf_model_type = "olmo2",
    .hf_names = kOlmo2HfNames,
    .gguf_keys = kGgufKeys,
    .gguf_windows_unscaled = true,
    .describe = DescribeOlmo2,
    .finish_gguf = FinishGguf,
    .finish_hf = HfAttentionBias,
};

}  // namespace hearth
