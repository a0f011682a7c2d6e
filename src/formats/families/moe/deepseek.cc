// DeepSeek V2 and V3, GLM 4.7 Flash, Kimi K2 and Mistral Small 4: latent
// attention, a dense lead, a shared expert; V2 and Mistral choose experts by a
// softmax, the others by sigmoids and a bias. All but Mistral are one
// architecture in GGUF.
#include <algorithm>
#include <cmath>

#include "formats/families/all.h"
#include "formats/families/moe/moe.h"
#include "formats/families/settings.h"
#include "formats/narrow.h"
#include "formats/rope_scaling.h"

namespace hearth {
namespace {

// Beyond any model; keeps sums within int.
constexpr int kSizeMax = 1 << 20;

constexpr char kSigmoid[] = "deepseek2";
constexpr char kSoftmax[] = "deepseek2-softmax";
constexpr char kMistral[] = "mistral4";

constexpr NameScheme kGgufNamesLatent = WithGgufMoe(
    WithNames(kGgufNames, {{Role::kQDown, "blk.{}.attn_q_a"},
                           {Role::kQDownNorm, "blk.{}.attn_q_a_norm"},
                           {Role::kQUp, "blk.{}.attn_q_b"},
                           {Role::kKvDown, "blk.{}.attn_kv_a_mqa"},
                           {Role::kKvDownNorm, "blk.{}.attn_kv_a_norm"},
                           {Role::kKvUp, "blk.{}.attn_kv_b"},
                           {Role::kKeyHeads, "blk.{}.attn_k_b"},
                           {Role::kValueHeads, "blk.{}.attn_v_b"}}));

constexpr NameScheme kHfNames = WithHfMoe(
    WithNames(kHuggingFaceNames,
              {{Role::kQDown, "model.layers.{}.self_attn.q_a_proj"},
               {Role::kQDownNorm, "model.layers.{}.self_attn.q_a_layernorm"},
               {Role::kQUp, "model.layers.{}.self_attn.q_b_proj"},
               {Role::kKvDown, "model.layers.{}.self_attn.kv_a_proj_with_mqa"},
               {Role::kKvDownNorm, "model.layers.{}.self_attn.kv_a_layernorm"},
               {Role::kKvUp, "model.layers.{}.self_attn.kv_b_proj"}}));

constexpr std::string_view kGgufKeys[] = {"expert_count",
                                          "expert_shared_count",
                                          "expert_weights_scale",
                                          "attention.key_length",
                                          "attention.head_count_kv",
                                          "rope.scaling.yarn_log_multiplier"};

void Describe(ModelConfig& config, WeightPlan&) {
  config.router = RouterKind::kSigmoid;
  config.router_rules.bias = true;
  config.router_rules.groups_by_two = true;
}

// Yarn's factor of the scores: once for queries, once for keys.
double ScoreScale(const ModelConfig& c, double factor) {
  return factor * factor / std::sqrt(std::max(1, c.latent.query_dim()));
}

// --- GGUF --------------------------------------------------------------------
// The multiplier of yarn's logarithm, a tenth of what config.json says. It is
// in cos and sin in other families; here it is in the scale of scores.
Result<void> SetGgufScale(const GgufInput& in) {
  ModelConfig& c = in.config;
  double factor = 1;
  if (c.rope.scaling.kind == RopeScalingKind::kYarn) {
    HEARTH_ASSIGN(const double tenth,
                  in.file.Float(in.Key("rope.scaling.yarn_log_multiplier"), 0));
    factor = YarnAttentionFactor(c.rope.scaling.factor, 10 * tenth);
    c.rope.scaling.attention_factor = 1;
    HEARTH_TRY(BuildRope(c.rope, in.file.label()));
  }
  c.attention_scale = NarrowToFloat(ScoreScale(c, factor));
  return {};
}

Result<void> ReadGgufGrowth(const GgufInput& in) {
  ModelConfig& c = in.config;
  HEARTH_ASSIGN(const double beta,
                in.file.Float(in.Key("attention.temperature_scale"), 0));
  if (beta == 0) return {};
  c.query_growth = {
      NarrowToFloat(beta),
      static_cast<int>(std::clamp(c.rope.scaling.original_context, 0.0, 1e9))};
  return {};
}

Result<void> FinishGguf(const GgufInput& in) {
  ModelConfig& c = in.config;
  LatentShape& latent = c.latent;
  HEARTH_ASSIGN(latent.kv_rank, GgufSize(in, "attention.kv_lora_rank", 0));
  if (latent.kv_rank == 0) {
    return {Code::kCorrupt, in.file.label() + ": attention.kv_lora_rank is 0"};
  }
  HEARTH_ASSIGN(latent.q_rank, GgufSize(in, "attention.q_lora_rank", 0));
  HEARTH_ASSIGN(const int key,
                GgufSize(in, "attention.key_length_mla", c.head_dim));
  HEARTH_ASSIGN(const int value,
                GgufSize(in, "attention.value_length", c.head_dim));
  HEARTH_ASSIGN(latent.value_dim,
                GgufSize(in, "attention.value_length_mla", value));
  latent.rope_dim = c.rope.rotary_dim;
  latent.nope_dim = key - latent.rope_dim;
  c.head_dim = key;
  c.n_kv_heads = c.n_heads;
  HEARTH_TRY(GgufLeadAndExperts(in, kGgufNamesLatent));
  in.plan.fused_latent =
      !in.tensors.Has(WeightName(kGgufNamesLatent, Role::kKeyHeads));
  HEARTH_TRY(SetGgufScale(in));
  // Files before the key have a bias where sigmoids choose.
  HEARTH_ASSIGN(const int gating, GgufSize(in, "expert_gating_func", 0));
  const bool sigmoid = gating == 2 || (gating == 0 && c.router_rules.bias);
  HEARTH_TRY(GgufRouterRules(in, sigmoid));
  HEARTH_TRY(ReadGgufGrowth(in));
  if (sigmoid) return {};
  const bool mistral = c.architecture == kMistral;
  if (!mistral) c.architecture = kSoftmax;
  c.router_rules.groups_by_two = mistral;
  c.router = c.router_rules.normalize ? RouterKind::kSoftmaxOfChosen
                                      : RouterKind::kSoftmaxOfAll;
  c.router_rules.normalize = true;
  return {};
}

void WriteGguf(const ModelConfig& c, const GgufKeyWriter& key) {
  const LatentShape& latent = c.latent;
  if (latent.q_rank > 0) key.size("attention.q_lora_rank", latent.q_rank);
  key.size("attention.kv_lora_rank", latent.kv_rank);
  key.size("attention.head_count_kv", 1);
  key.size("attention.key_length", latent.kept_dim());
  key.size("attention.value_length", latent.kv_rank);
  key.size("attention.key_length_mla", latent.query_dim());
  key.size("attention.value_length_mla", latent.value_dim);
  WriteGgufLeadAndExperts(c, key);
  if (c.query_growth.beta != 0) {
    key.number("attention.temperature_scale", double{c.query_growth.beta});
  }
  if (c.rope.scaling.kind != RopeScalingKind::kYarn) return;
  const double factor = std::sqrt(double{c.attention_scale} / ScoreScale(c, 1));
  const double logarithm = std::log(c.rope.scaling.factor);
  // Six decimals: a scale that was rounded once gives the same number again.
  const double tenth = logarithm > 0 ? (factor - 1) / logarithm : 0;
  key.number("rope.scaling.yarn_log_multiplier", std::round(tenth * 1e6) / 1e6);
}

// --- Hugging Face ------------------------------------------------------------
Result<void> ReadLatent(const HfInput& in) {
  ModelConfig& c = in.config;
  LatentShape& latent = c.latent;
  in.plan.fused_latent = true;
  HEARTH_TRY(HfRequire(in, "attention_bias", false));
  HEARTH_ASSIGN(latent.kv_rank, HfSize(in, "kv_lora_rank"));
  HEARTH_ASSIGN(latent.q_rank, HfSize(in, "q_lora_rank", 0));
  HEARTH_ASSIGN(latent.nope_dim, HfSize(in, "qk_nope_head_dim"));
  HEARTH_ASSIGN(latent.rope_dim, HfSize(in, "qk_rope_head_dim"));
  HEARTH_ASSIGN(latent.value_dim, HfSize(in, "v_head_dim"));
  for (const int size : {latent.kv_rank, latent.nope_dim, latent.rope_dim}) {
    if (size < 1 || size > kSizeMax) {
      return {Code::kCorrupt,
              in.label + ": the sizes of latent attention are impossible"};
    }
  }
  c.head_dim = latent.query_dim();
  c.n_kv_heads = c.n_heads;
  c.rope.rotary_dim = latent.rope_dim;
  HEARTH_TRY(HfRequire(in, "rope_interleave", true));
  HEARTH_TRY(BuildRope(c.rope, in.label));
  double factor = 1;
  const Json* rope = JsonFind(in.json, "rope_parameters");
  if (rope == nullptr) rope = JsonFind(in.json, "rope_scaling");
  if (rope != nullptr && c.rope.scaling.kind == RopeScalingKind::kYarn) {
    HEARTH_ASSIGN(const double all,
                  JsonNumber(*rope, "mscale_all_dim", in.label, 0));
    factor = YarnAttentionFactor(c.rope.scaling.factor, all);
  }
  c.attention_scale = NarrowToFloat(ScoreScale(c, factor));
  return {};
}

Result<void> FinishHf(const HfInput& in) {
  in.config.architecture = kSigmoid;
  HEARTH_TRY(ReadLatent(in));
  return HfLeadAndExperts(in);
}

Result<void> FinishSoftmaxHf(const HfInput& in) {
  ModelConfig& c = in.config;
  HEARTH_TRY(ReadLatent(in));
  HEARTH_TRY(HfLeadAndExperts(in));
  c.router_rules.bias = c.router_rules.groups_by_two = false;
  HEARTH_ASSIGN(const bool normalize,
                JsonBool(in.json, "norm_topk_prob", in.label, false));
  c.router =
      normalize ? RouterKind::kSoftmaxOfChosen : RouterKind::kSoftmaxOfAll;
  c.router_rules.normalize = true;
  HEARTH_ASSIGN(const std::string method,
                JsonText(in.json, "topk_method", in.label, "greedy"));
  if (method == "greedy")
    c.router_rules.n_groups_used = c.router_rules.n_groups = 1;
  if (method != "greedy" && method != "group_limited_greedy") {
    return UnsupportedSetting(in.label, "topk_method " + method);
  }
  return {};
}

// Routers as DeepSeek V2's, but for what makes a group good.
Result<void> FinishMistralHf(const HfInput& in) {
  ModelConfig& c = in.config;
  HEARTH_TRY(ReadLatent(in));
  HEARTH_TRY(HfLeadAndExperts(in));
  c.router_rules.bias = false;
  c.router = c.router_rules.normalize ? RouterKind::kSoftmaxOfChosen
                                      : RouterKind::kSoftmaxOfAll;
  c.router_rules.normalize = true;
  const Json* rope = JsonFind(in.json, "rope_parameters");
  if (rope == nullptr || !rope->is_object()) return {};
  HEARTH_ASSIGN(const double beta,
                JsonNumber(*rope, "llama_4_scaling_beta", in.label, 0));
  if (beta == 0) return {};
  c.query_growth = {
      NarrowToFloat(beta),
      static_cast<int>(std::clamp(c.rope.scaling.original_context, 0.0, 1e9))};
  return {};
}

void WriteLatent(const ModelConfig& c, Json& json) {
  const LatentShape& latent = c.latent;
  json.erase("head_dim");
  json["kv_lora_rank"] = latent.kv_rank;
  json["q_lora_rank"] = latent.q_rank > 0 ? Json(latent.q_rank) : Json();
  json["qk_nope_head_dim"] = latent.nope_dim;
  json["qk_rope_head_dim"] = latent.rope_dim;
  json["v_head_dim"] = latent.value_dim;
  json["rope_interleave"] = true;
  WriteHfLeadAndExperts(c, json);
  if (c.rope.scaling.kind != RopeScalingKind::kYarn) return;
  const double factor = std::sqrt(double{c.attention_scale} / ScoreScale(c, 1));
  const double all = (factor - 1) / (0.1 * std::log(c.rope.scaling.factor));
  for (const char* key : {"rope_parameters", "rope_scaling"}) {
    if (!json.contains(key)) continue;
    json[key]["mscale"] = json[key]["mscale_all_dim"] = all;
    json[key].erase("attention_factor");
  }
}

void WriteMistralHf(const ModelConfig& c, Json& json) {
  WriteLatent(c, json);
  json["norm_topk_prob"] = c.router == RouterKind::kSoftmaxOfChosen;
  if (c.query_growth.beta != 0) {
    json["rope_parameters"]["llama_4_scaling_beta"] =
        HfNumber(c.query_growth.beta);
  }
}

void WriteSoftmaxHf(const ModelConfig& c, Json& json) {
  WriteLatent(c, json);
  json["norm_topk_prob"] = c.router == RouterKind::kSoftmaxOfChosen;
  json["topk_method"] =
      c.router_rules.n_groups > 1 ? "group_limited_greedy" : "greedy";
}

constexpr Family Make(std::string_view architecture, std::string_view hf_class,
                      std::string_view model_type) {
  return {
      .architecture = architecture,
      .hf_class = hf_class,
      .hf_model_type = model_type,
      .gguf_names = kGgufNamesLatent,
      .hf_names = kHfNames,
      .gguf_interleaved = true,
      .hf_head_dim = 1,
      .hf_interleaved = true,
      .gguf_keys = kGgufKeys,
      .describe = Describe,
      .finish_gguf = FinishGguf,
      .finish_hf = FinishHf,
      .adapt_hf = AdaptHfExperts,
      .write_hf = WriteLatent,
      .write_gguf = WriteGguf,
  };
}

constexpr Family MakeSoftmax() {
  Family family = Make(kSoftmax, "DeepseekV2ForCausalLM", "deepseek_v2");
  family.gguf_form = kSigmoid;
  family.finish_hf = FinishSoftmaxHf;
  family.write_hf = WriteSoftmaxHf;
  return family;
}

constexpr Family MakeMistral() {
  Family family = Make(kMistral, "Mistral4ForCausalLM", "mistral4");
  family.gguf_architecture = kMistral;
  family.hf_partial_rotary = true;
  family.finish_hf = FinishMistralHf;
  family.write_hf = WriteMistralHf;
  return family;
}

constexpr Family MakeSigmoid() {
  Family family = Make(kSigmoid, "DeepseekV3ForCausalLM", "deepseek_v3");
  family.gguf_architecture = kSigmoid;
  return family;
}

}  // namespace

constinit const Family kDeepseekV3Family = MakeSigmoid();
constinit const Family kDeepseekV2Family = MakeSoftmax();
constinit const Family kMistral4Family = MakeMistral();
// Of other names there, and the same otherwise.
constinit const Family kGlm4MoeLiteFamily =
    Make("glm4-moe-lite", "Glm4MoeLiteForCausalLM", "glm4_moe_lite");

}  // namespace hearth
