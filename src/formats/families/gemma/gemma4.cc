// Gemma 4, text only. Layers with windows and those without have heads of two
// sizes and may have KV heads of two numbers; the last layers may attend to
// what the last earlier layer of their kind keeps; a token may have a second
// embedding with a part for each layer; experts stand beside a dense network.
#include <algorithm>

#include "formats/families/all.h"
#include "formats/families/gemma/gemma.h"
#include "formats/families/settings.h"
#include "formats/huggingface/hf_rope.h"
#include "formats/rope_scaling.h"

namespace hearth {
namespace {

constexpr int kWindow = 512;
constexpr int kFullHeadDim = 512;

constexpr NameScheme kGgufNames4 =
    WithNames(kGgufNames, {{Role::kCrossQ, "blk.{}.attn_q"},
                           {Role::kCrossO, "blk.{}.attn_output"},
                           {Role::kExpertGateUp, "blk.{}.ffn_gate_up_exps"},
                           {Role::kLayerEmbedding, "per_layer_token_embd"},
                           {Role::kLayerProjection, "per_layer_model_proj"},
                           {Role::kLayerProjectionNorm, "per_layer_proj_norm"},
                           {Role::kInputGate, "blk.{}.inp_gate"},
                           {Role::kInputUp, "blk.{}.proj"},
                           {Role::kInputNorm, "blk.{}.post_norm"},
                           {Role::kLayerScale, "blk.{}.layer_output_scale"},
                           {Role::kRouterScale, "blk.{}.ffn_gate_inp.scale#"},
                           {Role::kExpertScales, "blk.{}.ffn_down_exps.scale#"},
                           {Role::kDensePostNorm, "blk.{}.post_ffw_norm_1"},
                           {Role::kExpertsNorm, "blk.{}.pre_ffw_norm_2"},
                           {Role::kExpertsPostNorm, "blk.{}.post_ffw_norm_2"}});

constexpr NameScheme kHfNames4 = WithNames(
    kGemmaHfNames,
    {{Role::kCrossQ, "model.layers.{}.self_attn.q_proj"},
     {Role::kCrossO, "model.layers.{}.self_attn.o_proj"},
     {Role::kRouter, "model.layers.{}.router.proj"},
     {Role::kExpertGateUp, "model.layers.{}.experts.gate_up_proj#"},
     {Role::kExpertDown, "model.layers.{}.experts.down_proj#"},
     {Role::kLayerEmbedding, "model.embed_tokens_per_layer"},
     {Role::kLayerProjection, "model.per_layer_model_projection"},
     {Role::kLayerProjectionNorm, "model.per_layer_projection_norm"},
     {Role::kInputGate, "model.layers.{}.per_layer_input_gate"},
     {Role::kInputUp, "model.layers.{}.per_layer_projection"},
     {Role::kInputNorm, "model.layers.{}.post_per_layer_input_norm"},
     {Role::kLayerScale, "model.layers.{}.layer_scalar#"},
     {Role::kRouterScale, "model.layers.{}.router.scale#"},
     {Role::kExpertScales, "model.layers.{}.router.per_expert_scale#"},
     {Role::kDensePostNorm, "model.layers.{}.post_feedforward_layernorm_1"},
     {Role::kExpertsNorm, "model.layers.{}.pre_feedforward_layernorm_2"},
     {Role::kExpertsPostNorm, "model.layers.{}.post_feedforward_layernorm_2"}});

constexpr std::string_view kGgufKeys[] = {
    "attention.sliding_window", "attention.head_count_kv",
    "attention.key_length",     "feed_forward_length",
    "final_logit_softcapping",  "expert_count"};

void Describe(ModelConfig& config, WeightPlan& plan) {
  DescribeGemmaWithHeadNorms(config, plan);
  config.value_norm = true;
  config.router = RouterKind::kSoftmaxOfChosen;
  plan.layer_scale = true;
}

// What both files say.
struct Shapes {
  int n_shared = 0;  // layers without keys of their own, the last ones
  int full_head_dim = 0;
  bool values_from_keys = false;  // in layers without a window
};

// Each of the last layers attends to what the last one of its kind before them
// keeps.
Result<void> SetShapes(const Shapes& shapes, const std::string& label,
                       ModelConfig& c) {
  auto& kinds = c.layer_kinds;
  if (kinds.empty()) SetLayerKinds(c, [](LayerKind&, int) {});
  const auto n = static_cast<int>(kinds.size());
  if (shapes.n_shared < 0 || (shapes.n_shared > 0 && shapes.n_shared >= n)) {
    return {Code::kCorrupt, label + ": " + std::to_string(shapes.n_shared) +
                                " layers cannot do without keys and values"};
  }
  const int first_shared = n - shapes.n_shared;
  int last_full = -1, last_windowed = -1;
  for (int i = 0; i < n; ++i) {
    LayerKind& kind = kinds[static_cast<std::size_t>(i)];
    const bool full = kind.window == 0;
    kind.rope = full ? RopeUse::kMain : RopeUse::kLocal;
    if (full && shapes.full_head_dim != c.head_dim) {
      kind.head_dim = shapes.full_head_dim;
    }
    int& last = full ? last_full : last_windowed;
    if (i < first_shared) {
      kind.values_from_keys = full && shapes.values_from_keys;
      last = i;
    } else if (last < 0) {
      return {Code::kCorrupt,
              label + ": layer " + std::to_string(i) +
                  " has no earlier one of its kind to attend to"};
    } else {
      kind.kv_source = last;
    }
  }
  return {};
}

int SharedLayers(const ModelConfig& c) {
  return static_cast<int>(
      std::count_if(c.layer_kinds.begin(), c.layer_kinds.end(),
                    [](const LayerKind& kind) { return kind.kv_source >= 0; }));
}

// The first layer without a window, or the last layer.
int FullLayer(const ModelConfig& c) {
  int i = 0;
  while (i + 1 < c.n_layers && c.KindOf(i).window > 0) ++i;
  return i;
}

// --- GGUF --------------------------------------------------------------------
Result<void> ReadGgufLayers(const GgufInput& in) {
  ModelConfig& c = in.config;
  Shapes shapes;
  shapes.full_head_dim = c.head_dim;
  HEARTH_ASSIGN(c.head_dim,
                GgufSize(in, "attention.key_length_swa", c.head_dim));
  HEARTH_ASSIGN(shapes.n_shared, GgufSize(in, "attention.shared_kv_layers", 0));
  HEARTH_TRY(GgufWindows(in, kGemmaPeriod, 0));
  HEARTH_ASSIGN(const std::vector<int> kv_heads,
                GgufPerLayer(in, "attention.head_count_kv", c.n_kv_heads));
  HEARTH_ASSIGN(const std::vector<int> widths,
                GgufPerLayer(in, "feed_forward_length", c.d_mlp));
  const int full = FullLayer(c);
  const auto has_v = [&](int i) {
    return in.tensors.Has(WeightName(kGgufNames4, Role::kV, i));
  };
  shapes.values_from_keys = !has_v(full);
  HEARTH_TRY(SetShapes(shapes, in.file.label(), c));
  for (std::size_t i = 0; i < c.layer_kinds.size(); ++i) {
    LayerKind& kind = c.layer_kinds[i];
    if (kv_heads[i] != c.n_kv_heads) kind.n_kv_heads = kv_heads[i];
    if (widths[i] != c.d_mlp) kind.d_mlp = widths[i];
  }
  return {};
}

Result<void> FinishGguf(const GgufInput& in) {
  ModelConfig& c = in.config;
  c.attention_scale = 1;
  HEARTH_TRY(ReadGgufLayers(in));
  HEARTH_ASSIGN(const int rotary_dim,
                GgufSize(in, "rope.dimension_count_swa", c.head_dim));
  HEARTH_TRY(GemmaLocalRopeGguf(in, rotary_dim));
  HEARTH_ASSIGN(const double cap,
                in.file.Float(in.Key("final_logit_softcapping"), 0));
  c.logit_softcap = static_cast<float>(cap);
  HEARTH_ASSIGN(c.d_layer_input,
                GgufSize(in, "embedding_length_per_layer_input", 0));
  in.plan.layer_scale =
      in.tensors.Has(WeightName(kGgufNames4, Role::kLayerScale));
  HEARTH_ASSIGN(const int n_experts, GgufSize(in, "expert_count", 0));
  if (n_experts == 0) return {};
  c.dense_beside_experts = true;
  in.plan.fused_expert_gate_up =
      in.tensors.Has(WeightName(kGgufNames4, Role::kExpertGateUp));
  return GgufExperts(in);
}

void WriteGguf(const ModelConfig& c, const GgufKeyWriter& key) {
  const int full_dim = c.HeadDim(FullLayer(c));
  key.size("attention.key_length", full_dim);
  key.size("attention.value_length", full_dim);
  key.size("attention.key_length_swa", c.head_dim);
  key.size("attention.value_length_swa", c.head_dim);
  key.size("attention.shared_kv_layers", SharedLayers(c));
  key.size("embedding_length_per_layer_input", c.d_layer_input);
  key.size("rope.dimension_count_swa", c.local_rope.rotary_dim);
  std::vector<std::int32_t> kv_heads, widths;
  for (int i = 0; i < c.n_layers; ++i) {
    kv_heads.push_back(c.KvHeads(i));
    widths.push_back(c.MlpWidth(i));
  }
  key.sizes("attention.head_count_kv", std::move(kv_heads));
  key.sizes("feed_forward_length", std::move(widths));
}

// --- Hugging Face ------------------------------------------------------------
// Numbers of one layer, from per_layer_config, or those of all layers without
// a window.
Result<void> ReadHfLayers(const HfInput& in) {
  ModelConfig& c = in.config;
  Shapes shapes;
  HEARTH_ASSIGN(shapes.values_from_keys,
                JsonBool(in.json, "attention_k_eq_v", in.label, false));
  HEARTH_ASSIGN(shapes.n_shared, HfSize(in, "num_kv_shared_layers", 0));
  HEARTH_ASSIGN(shapes.full_head_dim,
                HfSize(in, "global_head_dim", kFullHeadDim));
  HEARTH_ASSIGN(const int full_kv_heads,
                HfSize(in, "num_global_key_value_heads", c.n_kv_heads));
  const Json* own = JsonFind(in.json, "per_layer_config");
  if (own != nullptr && own->is_object()) {
    // All layers without a window are alike.
    const Json* full = JsonFind(*own, std::to_string(FullLayer(c)).c_str());
    shapes.full_head_dim = c.head_dim;
    if (full != nullptr) {
      HEARTH_ASSIGN(shapes.full_head_dim, HfSize({*full, in.label, c, in.plan},
                                                 "head_dim", c.head_dim));
    }
  }
  HEARTH_TRY(SetShapes(shapes, in.label, c));
  for (std::size_t i = 0; i < c.layer_kinds.size(); ++i) {
    LayerKind& kind = c.layer_kinds[i];
    int kv_heads = c.n_kv_heads, head_dim = c.HeadDim(static_cast<int>(i));
    if (own != nullptr && own->is_object()) {
      const Json* layer = JsonFind(*own, std::to_string(i).c_str());
      if (layer != nullptr) {
        const HfInput one{*layer, in.label, c, in.plan};
        HEARTH_ASSIGN(kv_heads,
                      HfSize(one, "num_key_value_heads", c.n_kv_heads));
        HEARTH_ASSIGN(head_dim, HfSize(one, "head_dim", c.head_dim));
      }
    } else if (kind.window == 0 && shapes.values_from_keys) {
      kv_heads = full_kv_heads;
    }
    if (kv_heads != c.n_kv_heads) kind.n_kv_heads = kv_heads;
    if (head_dim != c.HeadDim(static_cast<int>(i))) {
      return UnsupportedSetting(in.label,
                                "per_layer_config: heads of other sizes than "
                                "one with and one without a window");
    }
  }
  HEARTH_ASSIGN(const bool wide,
                JsonBool(in.json, "use_double_wide_mlp", in.label, false));
  for (LayerKind& kind : c.layer_kinds) {
    if (wide && kind.kv_source >= 0 && c.d_mlp < 1 << 29) {
      kind.d_mlp = 2 * c.d_mlp;
    }
  }
  return {};
}

Result<void> ReadHfRopes(const HfInput& in) {
  ModelConfig& c = in.config;
  c.rope.rotary_dim = c.HeadDim(FullLayer(c));
  c.local_rope.rotary_dim = c.head_dim;
  const Json* parameters = JsonFind(in.json, "rope_parameters");
  const Json usual = {{"rope_type", "proportional"},
                      {"partial_rotary_factor", 0.25}};
  const Json* full = &usual;
  const Json* sliding = nullptr;
  if (parameters != nullptr) {
    full = JsonFind(*parameters, "full_attention");
    sliding = JsonFind(*parameters, "sliding_attention");
  }
  HEARTH_TRY(ReadHfRope(in.json, full, kGemmaBase, c.rope, in.label));
  if (c.rope.scaling.kind == RopeScalingKind::kNone) {
    c.rope.scaling.kind = RopeScalingKind::kProportional;
    HEARTH_TRY(BuildRope(c.rope, in.label));
  }
  return ReadHfRope(in.json, sliding, kGemmaLocalBase, c.local_rope, in.label);
}

Result<void> FinishHf(const HfInput& in) {
  ModelConfig& c = in.config;
  c.attention_scale = 1;
  HEARTH_TRY(HfRequire(in, "attention_bias", false));
  const Json* both_ways = JsonFind(in.json, "use_bidirectional_attention");
  if (both_ways != nullptr && *both_ways == "all") {
    return UnsupportedSetting(in.label,
                              "use_bidirectional_attention = \"all\"");
  }
  HEARTH_ASSIGN(c.logit_softcap, HfSoftcap(in, "final_logit_softcapping", 0));
  constexpr char kInput[] = "hidden_size_per_layer_input";
  const bool no_input =
      in.json.contains(kInput) && in.json.at(kInput).is_null();
  HEARTH_ASSIGN(c.d_layer_input, HfSize(in, kInput, no_input ? 0 : 256));
  HEARTH_ASSIGN(const int window, HfSize(in, "sliding_window", kWindow));
  // Whatever the list says, the last layer has no window.
  HEARTH_TRY(HfWindows(in, window, GemmaHasWindow));
  if (!c.layer_kinds.empty()) c.layer_kinds.back().window = 0;
  HEARTH_TRY(ReadHfLayers(in));
  HEARTH_TRY(ReadHfRopes(in));
  HEARTH_ASSIGN(c.dense_beside_experts,
                JsonBool(in.json, "enable_moe_block", in.label, false));
  if (!c.dense_beside_experts) return {};
  in.plan.fused_expert_gate_up = true;
  HEARTH_ASSIGN(c.n_experts, HfSize(in, "num_experts"));
  HEARTH_ASSIGN(c.n_experts_used, HfSize(in, "top_k_experts"));
  const char* width = JsonFind(in.json, "moe_intermediate_size") != nullptr
                          ? "moe_intermediate_size"
                          : "expert_intermediate_size";
  HEARTH_ASSIGN(c.d_expert, HfSize(in, width));
  return {};
}

void WriteHf(const ModelConfig& c, Json& json) {
  const int full = FullLayer(c);
  json["global_head_dim"] = c.HeadDim(full);
  json["num_global_key_value_heads"] = c.KvHeads(full);
  json["attention_k_eq_v"] = c.KindOf(full).values_from_keys;
  Json own = Json::object();
  for (int i = 0; i < c.n_layers; ++i) {
    Json layer = Json::object();
    if (c.HeadDim(i) != c.head_dim) layer["head_dim"] = c.HeadDim(i);
    if (c.KvHeads(i) != c.n_kv_heads) {
      layer["num_key_value_heads"] = c.KvHeads(i);
    }
    if (!layer.empty()) own[std::to_string(i)] = std::move(layer);
  }
  json["per_layer_config"] = std::move(own);
  json["num_kv_shared_layers"] = SharedLayers(c);
  json["use_double_wide_mlp"] = c.KindOf(c.n_layers - 1).d_mlp > 0;
  json["hidden_size_per_layer_input"] = c.d_layer_input;
  json["vocab_size_per_layer_input"] = c.vocab_size;
  json["final_logit_softcapping"] =
      c.logit_softcap == 0 ? Json() : Json(HfNumber(c.logit_softcap));
  json["enable_moe_block"] = c.dense_beside_experts;
  if (!c.dense_beside_experts) return;
  json["num_experts"] = c.n_experts;
  json["top_k_experts"] = c.n_experts_used;
  json["moe_intermediate_size"] = c.d_expert;
}

}  // namespace

constinit const Family kGemma4Family = {
    .architecture = "gemma4",
    .gguf_architecture = "gemma4",
    .hf_class = "Gemma4ForCausalLM",
    .hf_model_type = "gemma4_text",
    .gguf_names = kGgufNames4,
    .hf_names = kHfNames4,
    .hf_keys = kGemmaHfKeys,
    .mlp = MlpKind::kGatedGeluTanh,
    .hf_tied = true,
    .hf_head_dim = 256,
    .hf_rope_per_layer = true,
    .gguf_keys = kGgufKeys,
    .gguf_window_period = kGemmaPeriod,
    .gguf_window_list = true,
    .describe = Describe,
    .finish_gguf = FinishGguf,
    .finish_hf = FinishHf,
    .write_hf = WriteHf,
    .write_gguf = WriteGguf,
};

}  // namespace hearth
