// LFM2 and 2.5, dense: gated short convolutions, and attention in some layers.
#include <algorithm>

#include "formats/families/all.h"
#include "formats/families/hybrid/mixers.h"
#include "formats/families/settings.h"

namespace hearth {
namespace {

constexpr NameScheme kLfm2GgufNames =
    WithNames(kGgufNames, {{Role::kFinalNorm, "token_embd_norm"},
                           {Role::kShortConvIn, "blk.{}.shortconv.in_proj"},
                           {Role::kShortConvTaps, "blk.{}.shortconv.conv"},
                           {Role::kShortConvOut, "blk.{}.shortconv.out_proj"}});

constexpr NameScheme kHfNames =
    WithNames(kHuggingFaceNames,
              {{Role::kFinalNorm, "model.embedding_norm"},
               {Role::kAttentionNorm, "model.layers.{}.operator_norm"},
               {Role::kMlpNorm, "model.layers.{}.ffn_norm"},
               {Role::kO, "model.layers.{}.self_attn.out_proj"},
               {Role::kQNorm, "model.layers.{}.self_attn.q_layernorm"},
               {Role::kKNorm, "model.layers.{}.self_attn.k_layernorm"},
               {Role::kGate, "model.layers.{}.feed_forward.w1"},
               {Role::kUp, "model.layers.{}.feed_forward.w3"},
               {Role::kDown, "model.layers.{}.feed_forward.w2"},
               {Role::kShortConvIn, "model.layers.{}.conv.in_proj"},
               {Role::kShortConvTaps, "model.layers.{}.conv.conv"},
               {Role::kShortConvOut, "model.layers.{}.conv.out_proj"}});

constexpr std::string_view kGgufKeys[] = {"attention.head_count_kv"};

void Describe(ModelConfig& config, WeightPlan&) {
  config.qk_norm = QkNorm::kPerHead;
}

// A layer without KV heads has a convolution.
Result<void> FinishGguf(const GgufInput& in) {
  HEARTH_ASSIGN(in.config.conv_taps, GgufSize(in, "shortconv.l_cache", 3));
  return GgufMixers(in, Mixer::kShortConv);
}

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
  HEARTH_TRY(HfRequire(in, "conv_bias", false));
  HEARTH_TRY(AdjustWidth(in));
  HEARTH_ASSIGN(in.config.conv_taps, HfSize(in, "conv_L_cache", 3));
  const Json* attention = JsonFind(in.json, "full_attn_idxs");
  return HfMixers(in, {"conv"}, Mixer::kShortConv, [attention](int layer) {
    return attention != nullptr && attention->is_array() &&
           std::find(attention->begin(), attention->end(), layer) ==
               attention->end();
  });
}

void WriteHf(const ModelConfig& config, Json& json) {
  json["block_auto_adjust_ff_dim"] = false;
  json["conv_L_cache"] = config.conv_taps;
  json["conv_bias"] = false;
  WriteHfMixers(config, "conv", json);
}

void WriteGguf(const ModelConfig& config, const GgufKeyWriter& key) {
  key.size("shortconv.l_cache", config.conv_taps);
  WriteGgufMixers(config, key);
}

}  // namespace

constinit const Family kLfm2Family = {
    .architecture = "lfm2",
    .gguf_architecture = "lfm2",
    .hf_class = "Lfm2ForCausalLM",
    .hf_model_type = "lfm2",
    .gguf_names = kLfm2GgufNames,
    .hf_names = kHfNames,
    .hf_keys = {.d_mlp = "intermediate_size", .norm_eps = "norm_eps"},
    .hf_tied = true,
    .gguf_keys = kGgufKeys,
    .describe = Describe,
    .finish_gguf = FinishGguf,
    .finish_hf = FinishHf,
    .write_hf = WriteHf,
    .write_gguf = WriteGguf,
};

}  // namespace hearth
