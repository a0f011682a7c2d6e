// LFM2 and 2.5, dense: gated short convolutions, and attention in some layers.
#include "formats/families/hybrid/lfm2.h"

#include <algorithm>

#include "formats/families/all.h"
#include "formats/families/hybrid/mixers.h"
#include "formats/families/settings.h"

namespace hearth {
namespace {

constexpr std::string_view kGgufKeys[] = {"attention.head_count_kv"};

// Older files give the width before it is cut and rounded.
Result<void> AdjustWidth(const HfInput& in) {
  const char* key = JsonFind(in.json, "block_ff_dim") != nullptr
                        ? "block_ff_dim"
                        : "intermediate_size";
  HEARTH_ASSIGN(const int width, HfSize(in, key));
  in.config.d_mlp = width;
  HEARTH_ASSIGN(const bool adjust,
                JsonBool(in.json, "block_auto_adjust_ff_dim", in.label, true));
  if (!adjust) return {};
  HEARTH_ASSIGN(const int multiple, HfSize(in, "block_multiple_of", 256));
  HEARTH_ASSIGN(const float factor,
                HfScale(in, "block_ffn_dim_multiplier", 1.0));
  if (width > 1 << 26 || multiple < 1 || multiple > 1 << 26 || factor > 16) {
    return {Code::kCorrupt, in.label + ": the width of the MLP is impossible"};
  }
  const int cut = static_cast<int>(factor * static_cast<float>(2 * width / 3));
  in.config.d_mlp = (cut + multiple - 1) / multiple * multiple;
  return {};
}

Result<void> FinishHf(const HfInput& in) {
  HEARTH_TRY(AdjustWidth(in));
  return HfLfm2Mixers(in);
}

void WriteHf(const ModelConfig& config, Json& json) {
  json["block_auto_adjust_ff_dim"] = false;
  WriteHfLfm2Mixers(config, json);
}

}  // namespace

void DescribeLfm2(ModelConfig& config, WeightPlan&) {
  config.qk_norm = QkNorm::kPerHead;
}

// A layer without KV heads has a convolution.
Result<void> GgufLfm2Mixers(const GgufInput& in) {
  HEARTH_ASSIGN(in.config.conv_taps, GgufSize(in, "shortconv.l_cache", 3));
  return GgufMixers(in, Mixer::kShortConv);
}

Result<void> HfLfm2Mixers(const HfInput& in) {
  HEARTH_TRY(HfRequire(in, "conv_bias", false));
  HEARTH_ASSIGN(in.config.conv_taps, HfSize(in, "conv_L_cache", 3));
  const Json* attention = JsonFind(in.json, "full_attn_idxs");
  return HfMixers(in, {"conv"}, Mixer::kShortConv, [attention](int layer) {
    return attention != nullptr && attention->is_array() &&
           std::find(attention->begin(), attention->end(), layer) ==
               attention->end();
  });
}

void WriteHfLfm2Mixers(const ModelConfig& config, Json& json) {
  json["conv_L_cache"] = config.conv_taps;
  json["conv_bias"] = false;
  WriteHfMixers(config, "conv", json);
}

void WriteGgufLfm2(const ModelConfig& config, const GgufKeyWriter& key) {
  key.size("shortconv.l_cache", config.conv_taps);
  WriteGgufMixers(config, key);
}

constinit const Family kLfm2Family = {
    .architecture = "lfm2",
    .gguf_architecture = "lfm2",
    .hf_class = "Lfm2ForCausalLM",
    .hf_model_type = "lfm2",
    .gguf_names = kLfm2GgufNames,
    .hf_names = kLfm2HfNames,
    .hf_keys = {.d_mlp = "intermediate_size", .norm_eps = "norm_eps"},
    .hf_tied = true,
    .gguf_keys = kGgufKeys,
    .describe = DescribeLfm2,
    .finish_gguf = GgufLfm2Mixers,
    .finish_hf = FinishHf,
    .write_hf = WriteHf,
    .write_gguf = WriteGgufLfm2,
};

}  // namespace hearth
