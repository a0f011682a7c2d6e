// Granite 3 (dense): llama with four multipliers.
#include "formats/families/hybrid/granite.h"

#include "formats/families/all.h"
#include "formats/families/settings.h"

namespace hearth {
namespace {

constexpr std::string_view kGgufKeys[] = {"logit_scale", "embedding_scale",
                                          "residual_scale"};

Result<void> FinishGguf(const GgufInput& in) {
  GgufBiases(in);
  return GgufGraniteScales(in);
}

Result<void> FinishHf(const HfInput& in) {
  HEARTH_TRY(HfAttentionBias(in));
  HEARTH_TRY(HfMlpBias(in));
  return HfGraniteScales(in);
}

}  // namespace

Result<void> GgufGraniteScales(const GgufInput& in) {
  ModelConfig& c = in.config;
  HEARTH_ASSIGN(c.embedding_scale, GgufScale(in, "embedding_scale", 1));
  HEARTH_ASSIGN(c.residual_scale, GgufScale(in, "residual_scale", 1));
  // The name notwithstanding, logits are divided by it.
  HEARTH_ASSIGN(const float divisor, GgufScale(in, "logit_scale", 1));
  c.logit_scale = 1.0f / divisor;
  HEARTH_ASSIGN(const bool rotated,
                in.file.Bool(in.Key("rope.scaling.finetuned"), true));
  if (!rotated) c.rope = {};
  return {};
}

Result<void> HfGraniteScales(const HfInput& in) {
  ModelConfig& c = in.config;
  HEARTH_ASSIGN(c.embedding_scale, HfScale(in, "embedding_multiplier", 1));
  HEARTH_ASSIGN(c.residual_scale, HfScale(in, "residual_multiplier", 1));
  HEARTH_ASSIGN(c.attention_scale, HfScale(in, "attention_multiplier", 1));
  HEARTH_ASSIGN(const float divisor, HfScale(in, "logits_scaling", 1));
  c.logit_scale = 1.0f / divisor;
  return {};
}

void WriteHfGraniteScales(const ModelConfig& config, Json& json) {
  json["embedding_multiplier"] = HfNumber(config.embedding_scale);
  json["residual_multiplier"] = HfNumber(config.residual_scale);
  json["attention_multiplier"] = HfNumber(config.attention_scale);
  json["logits_scaling"] = HfNumber(1.0f / config.logit_scale);
}

constinit const Family kGraniteFamily = {
    .architecture = "granite",
    .gguf_architecture = "granite",
    .hf_class = "GraniteForCausalLM",
    .hf_model_type = "granite",
    .gguf_interleaved = true,
    .gguf_keys = kGgufKeys,
    .finish_gguf = FinishGguf,
    .finish_hf = FinishHf,
    .write_hf = WriteHfGraniteScales,
};

}  // namespace hearth
