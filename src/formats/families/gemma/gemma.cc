#include "formats/families/gemma/gemma.h"

#include <cmath>

#include "formats/families/settings.h"
#include "formats/narrow.h"

namespace hearth {

void DescribeGemma(ModelConfig& config, WeightPlan&) {
  config.norm_placement = NormPlacement::kAround;
  config.embedding_scale =
      static_cast<float>(std::sqrt(static_cast<double>(config.d_model)));
}

void DescribeGemmaWithHeadNorms(ModelConfig& config, WeightPlan& plan) {
  DescribeGemma(config, plan);
  config.qk_norm = QkNorm::kPerHead;
}

Result<void> GemmaLocalRopeGguf(const GgufInput& in, int rotary_dim) {
  HEARTH_ASSIGN(const double base,
                in.file.Float(in.Key("rope.freq_base_swa"), kGemmaLocalBase));
  return GgufLocalRope(in, rotary_dim, base);
}

Result<void> FinishGemmaHf(const HfInput& in, double attention_cap,
                           double logit_cap) {
  ModelConfig& c = in.config;
  in.plan.norm_offset = 1.0f;
  HEARTH_TRY(HfAttentionBias(in));
  HEARTH_ASSIGN(const float scalar, HfScale(in, "query_pre_attn_scalar", 256));
  c.attention_scale =
      static_cast<float>(1.0 / std::sqrt(static_cast<double>(scalar)));
  HEARTH_ASSIGN(c.attention_softcap,
                HfSoftcap(in, "attn_logit_softcapping", attention_cap));
  HEARTH_ASSIGN(c.logit_softcap,
                HfSoftcap(in, "final_logit_softcapping", logit_cap));
  return HfRequire(in, "use_bidirectional_attention", false);
}

void WriteGemmaHf(const ModelConfig& config, Json& json) {
  const auto cap = [](float value) {
    return value == 0 ? Json() : Json(HfNumber(value));
  };
  // An integer: transformers refuses 256.0.
  json["query_pre_attn_scalar"] = std::llround(
      1 / std::pow(static_cast<double>(config.attention_scale), 2));
  json["attn_logit_softcapping"] = cap(config.attention_softcap);
  json["final_logit_softcapping"] = cap(config.logit_softcap);
}

Result<void> FinishGemmaGguf(const GgufInput& in, int n_layers_27b,
                             double attention_cap, double logit_cap) {
  ModelConfig& c = in.config;
  if (!in.file.Has(in.Key("attention.scale"))) {
    const double scalar = c.n_layers == n_layers_27b && c.n_heads > 0
                              ? c.d_model / c.n_heads
                              : c.head_dim;
    c.attention_scale =
        static_cast<float>(1.0 / std::sqrt(scalar > 0 ? scalar : 1));
  }
  HEARTH_ASSIGN(const double attention,
                in.file.Float(in.Key("attn_logit_softcapping"), attention_cap));
  HEARTH_ASSIGN(const double logit,
                in.file.Float(in.Key("final_logit_softcapping"), logit_cap));
  c.attention_softcap = NarrowToFloat(attention);
  c.logit_softcap = NarrowToFloat(logit);
  return {};
}

}  // namespace hearth
