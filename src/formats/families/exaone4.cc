// EXAONE 4: norms after each sublayer, and one of every query and key head. The
// large model has windows in three of four layers and no rotation in the
// others; the small one has no windows and rotates everywhere.
#include <algorithm>

#include "formats/families/all.h"
#include "formats/families/settings.h"

namespace hearth {
namespace {

constexpr NameScheme kHfNames = WithNames(
    kHuggingFaceNames,
    {{Role::kPostAttentionNorm, "model.layers.{}.post_attention_layernorm"},
     {Role::kPostMlpNorm, "model.layers.{}.post_feedforward_layernorm"}});

constexpr std::string_view kGgufKeys[] = {"attention.sliding_window"};
constexpr int kPeriod = 4;

void Describe(ModelConfig& config, WeightPlan&) {
  config.norm_placement = NormPlacement::kAfter;
  config.qk_norm = QkNorm::kPerHead;
}

void RotateWindowsOnly(ModelConfig& config) {
  auto& kinds = config.layer_kinds;
  if (std::none_of(kinds.begin(), kinds.end(),
                   [](const LayerKind& kind) { return kind.window > 0; })) {
    return;
  }
  for (LayerKind& kind : kinds) {
    kind.rope = kind.window > 0 ? RopeUse::kMain : RopeUse::kNone;
  }
}

Result<void> FinishGguf(const GgufInput& in) {
  HEARTH_TRY(GgufWindows(in, kPeriod, 0));
  RotateWindowsOnly(in.config);
  return {};
}

Result<void> FinishHf(const HfInput& in) {
  HEARTH_ASSIGN(const int window, HfSize(in, "sliding_window", 0));
  const Json* pattern = JsonFind(in.json, "sliding_window_pattern");
  int period = kPeriod;
  // "LLLG" says the same, and stands beside layer_types.
  if (pattern != nullptr && !pattern->is_string()) {
    HEARTH_ASSIGN(period, HfSize(in, "sliding_window_pattern"));
  }
  if (period < 1) {
    return {Code::kCorrupt, in.label + ": sliding_window_pattern is 0"};
  }
  if (pattern != nullptr && pattern->is_string() &&
      JsonFind(in.json, "layer_types") == nullptr &&
      *pattern != std::string("LLLG")) {
    return UnsupportedSetting(
        in.label,
        "sliding_window_pattern without layer_types is not supported "
        "but for a number and \"LLLG\"");
  }
  HEARTH_TRY(HfWindows(
      in, window, [period](int layer) { return (layer + 1) % period != 0; }));
  RotateWindowsOnly(in.config);
  return {};
}

}  // namespace

constinit const Family kExaone4Family = {
    .architecture = "exaone4",
    .gguf_architecture = "exaone4",
    .hf_class = "Exaone4ForCausalLM",
    .hf_model_type = "exaone4",
    .hf_names = kHfNames,
    .gguf_keys = kGgufKeys,
    .gguf_window_period = kPeriod,
    .gguf_no_rope_without_window = true,
    .describe = Describe,
    .finish_gguf = FinishGguf,
    .finish_hf = FinishHf,
};

}  // namespace hearth
