// Falcon-H1: attention and a Mamba-2 mixer read one norm in every layer and are
// added, and most parts have a multiplier, which GGUF has in the weights.
#include <algorithm>
#include <cmath>

#include "formats/families/all.h"
#include "formats/families/hybrid/mamba2.h"
#include "formats/families/settings.h"
#include "formats/narrow.h"

namespace hearth {
namespace {

constexpr NameScheme kGgufNamesFalcon = WithGgufMamba2(kGgufNames);

constexpr NameScheme kHfNames = WithNames(
    kHuggingFaceNames, {{Role::kFinalNorm, "model.final_layernorm"},
                        {Role::kMlpNorm, "model.layers.{}.pre_ff_layernorm"},
                        {Role::kGate, "model.layers.{}.feed_forward.gate_proj"},
                        {Role::kUp, "model.layers.{}.feed_forward.up_proj"},
                        {Role::kDown, "model.layers.{}.feed_forward.down_proj"},
                        {Role::kMambaIn, "model.layers.{}.mamba.in_proj"},
                        {Role::kMambaTaps, "model.layers.{}.mamba.conv1d"},
                        {Role::kMambaScale, "model.layers.{}.mamba.A_log#"},
                        {Role::kMambaStep, "model.layers.{}.mamba.dt#"},
                        {Role::kMambaSkip, "model.layers.{}.mamba.D#"},
                        {Role::kMambaNorm, "model.layers.{}.mamba.norm"},
                        {Role::kMambaOut, "model.layers.{}.mamba.out_proj"}});

void SetKinds(ModelConfig& c) {
  SetLayerKinds(
      c, [](LayerKind& kind, int) { kind.mixer = Mixer::kAttentionAndMamba2; });
}

Result<void> FinishGguf(const GgufInput& in) {
  SetKinds(in.config);
  return GgufMamba2(in, kGgufNamesFalcon);
}

// A list of so many numbers; all 1 when it is missing.
Result<std::vector<double>> Numbers(const HfInput& in, const char* key,
                                    std::size_t n) {
  std::vector<double> numbers(n, 1.0);
  const Json* list = JsonFind(in.json, key);
  if (list == nullptr) return numbers;
  bool good = list->is_array() && list->size() == n;
  for (std::size_t i = 0; good && i < n; ++i) {
    good = (*list)[i].is_number();
    if (good) numbers[i] = (*list)[i].get<double>();
  }
  if (!good) {
    return {Code::kCorrupt, in.label + ": member \"" + key + "\" is not " +
                                std::to_string(n) + " numbers"};
  }
  return numbers;
}

Result<double> Multiplier(const HfInput& in, const char* key) {
  return JsonNumber(in.json, key, in.label, 1);
}

// What multiplies an input multiplies what is made of it.
Result<void> ReadScales(const HfInput& in) {
  ModelConfig& c = in.config;
  PartScales& s = c.part_scales;
  HEARTH_ASSIGN(c.embedding_scale, HfScale(in, "embedding_multiplier", 1));
  HEARTH_ASSIGN(c.logit_scale, HfScale(in, "lm_head_multiplier", 1));
  HEARTH_ASSIGN(const double keys, Multiplier(in, "key_multiplier"));
  HEARTH_ASSIGN(const double attention_in,
                Multiplier(in, "attention_in_multiplier"));
  HEARTH_ASSIGN(const double attention_out,
                Multiplier(in, "attention_out_multiplier"));
  c.attention_scale = NarrowToFloat(keys * attention_in * attention_in /
                                    std::sqrt(std::max(1, c.head_dim)));
  s.attention_out = NarrowToFloat(attention_in * attention_out);
  HEARTH_ASSIGN(const double ssm_in, Multiplier(in, "ssm_in_multiplier"));
  HEARTH_ASSIGN(const std::vector<double> parts,
                Numbers(in, "ssm_multipliers", s.mamba.size()));
  for (std::size_t i = 0; i < parts.size(); ++i) {
    s.mamba[i] = NarrowToFloat(parts[i] * ssm_in);
  }
  HEARTH_ASSIGN(const double ssm_out, Multiplier(in, "ssm_out_multiplier"));
  s.mamba_out = NarrowToFloat(ssm_out);
  HEARTH_ASSIGN(const std::vector<double> mlp,
                Numbers(in, "mlp_multipliers", 2));
  s.mlp_gate = NarrowToFloat(mlp[0]);
  s.mlp_down = NarrowToFloat(mlp[1]);
  return {};
}

Result<void> FinishHf(const HfInput& in) {
  ModelConfig& c = in.config;
  SetKinds(c);
  for (const char* key : {"attention_bias", "mlp_bias", "projectors_bias",
                          "mamba_norm_before_gate"}) {
    HEARTH_TRY(HfRequire(in, key, false));
  }
  HEARTH_TRY(HfMamba2(in, kMambaHfKeys));
  HEARTH_ASSIGN(c.mamba2.norm,
                JsonBool(in.json, "mamba_rms_norm", in.label, false));
  const std::int64_t heads_width =
      std::int64_t{c.mamba2.n_heads} * c.mamba2.head_dim;
  HEARTH_ASSIGN(const std::int64_t width,
                JsonInt(in.json, "mamba_d_ssm", in.label, heads_width));
  if (width != heads_width) {
    return {Code::kCorrupt,
            in.label + ": mamba_d_ssm is not mamba_n_heads * mamba_d_head"};
  }
  return ReadScales(in);
}

void WriteHf(const ModelConfig& c, Json& json) {
  const PartScales& s = c.part_scales;
  WriteHfMamba2(c, kMambaHfKeys, json);
  json["mamba_d_ssm"] = c.mamba2.width();
  json["mamba_rms_norm"] = c.mamba2.norm;
  json["mamba_norm_before_gate"] = false;
  json["embedding_multiplier"] = HfNumber(c.embedding_scale);
  json["lm_head_multiplier"] = HfNumber(c.logit_scale);
  json["key_multiplier"] =
      static_cast<double>(c.attention_scale) * std::sqrt(c.head_dim);
  json["attention_in_multiplier"] = 1.0;
  json["attention_out_multiplier"] = HfNumber(s.attention_out);
  json["ssm_in_multiplier"] = 1.0;
  Json parts = Json::array();
  for (const float part : s.mamba) parts.push_back(HfNumber(part));
  json["ssm_multipliers"] = std::move(parts);
  json["ssm_out_multiplier"] = HfNumber(s.mamba_out);
  json["mlp_multipliers"] = {HfNumber(s.mlp_gate), HfNumber(s.mlp_down)};
}

void WriteGguf(const ModelConfig& c, const GgufKeyWriter& key) {
  WriteGgufMamba2(c, key);
}

}  // namespace

constinit const Family kFalconH1Family = {
    .architecture = "falcon-h1",
    .gguf_architecture = "falcon-h1",
    .hf_class = "FalconH1ForCausalLM",
    .hf_model_type = "falcon_h1",
    .gguf_names = kGgufNamesFalcon,
    .hf_names = kHfNames,
    .gguf_folded_scales = true,
    .finish_gguf = FinishGguf,
    .finish_hf = FinishHf,
    .write_hf = WriteHf,
    .write_gguf = WriteGguf,
};

}  // namespace hearth
