// Granite 4: Mamba-2 in most layers and attention without positions in some,
// each with experts and a shared one, or with one dense network. A model of
// this class whose layers all attend and that has no experts is a Granite 3.
#include <algorithm>

#include "formats/families/all.h"
#include "formats/families/hybrid/granite.h"
#include "formats/families/hybrid/mamba2.h"
#include "formats/families/hybrid/mixers.h"
#include "formats/families/settings.h"

namespace hearth {
namespace {

constexpr NameScheme kGgufNamesGranite = WithGgufMamba2(kGgufNames);

constexpr NameScheme kHfNames = WithNames(
    kHuggingFaceNames,
    {{Role::kGateUp, "model.layers.{}.shared_mlp.input_linear"},
     {Role::kDown, "model.layers.{}.shared_mlp.output_linear"},
     {Role::kRouter, "model.layers.{}.block_sparse_moe.router.layer"},
     {Role::kExpertGateUp, "model.layers.{}.block_sparse_moe.input_linear"},
     {Role::kExpertDown, "model.layers.{}.block_sparse_moe.output_linear"},
     {Role::kSharedGateUp, "model.layers.{}.shared_mlp.input_linear"},
     {Role::kSharedDown, "model.layers.{}.shared_mlp.output_linear"},
     {Role::kMambaIn, "model.layers.{}.mamba.in_proj"},
     {Role::kMambaTaps, "model.layers.{}.mamba.conv1d"},
     {Role::kMambaScale, "model.layers.{}.mamba.A_log#"},
     {Role::kMambaStep, "model.layers.{}.mamba.dt#"},
     {Role::kMambaSkip, "model.layers.{}.mamba.D#"},
     {Role::kMambaNorm, "model.layers.{}.mamba.norm"},
     {Role::kMambaOut, "model.layers.{}.mamba.out_proj"}});

constexpr std::string_view kGgufKeys[] = {
    "attention.head_count_kv", "expert_count",   "expert_shared_count",
    "embedding_scale",         "residual_scale", "logit_scale"};

void Describe(ModelConfig& config, WeightPlan&) {
  config.router = RouterKind::kSoftmaxOfChosen;
  config.shared_expert_gate = false;
}

Result<void> FinishGguf(const GgufInput& in) {
  ModelConfig& c = in.config;
  HEARTH_TRY(GgufGraniteScales(in));
  HEARTH_TRY(GgufMixers(in, Mixer::kMamba2));
  HEARTH_TRY(GgufMamba2(in, kGgufNamesGranite));
  HEARTH_ASSIGN(const int n_experts, GgufSize(in, "expert_count", 0));
  if (n_experts == 0) return {};
  HEARTH_ASSIGN(c.d_shared_expert,
                GgufSize(in, "expert_shared_feed_forward_length", 0));
  return GgufExperts(in);
}

void WriteGguf(const ModelConfig& c, const GgufKeyWriter& key) {
  WriteGgufMixers(c, key);
  WriteGgufMamba2(c, key);
  key.flag("rope.scaling.finetuned", c.rope.rotary_dim > 0);
  if (c.n_experts > 0) {
    key.size("expert_shared_feed_forward_length", c.d_shared_expert);
  }
}

Result<void> FinishHf(const HfInput& in) {
  ModelConfig& c = in.config;
  HEARTH_TRY(HfRequire(in, "attention_bias", false));
  HEARTH_TRY(HfGraniteScales(in));
  HEARTH_ASSIGN(const std::string positions,
                JsonText(in.json, "position_embedding_type", in.label, "nope"));
  if (positions != "rope") c.rope = {};
  HEARTH_TRY(HfMixers(in, {"linear_attention", "mamba"}, Mixer::kMamba2,
                      [](int) { return false; }));
  const bool hybrid =
      std::any_of(c.layer_kinds.begin(), c.layer_kinds.end(),
                  [](const LayerKind& kind) { return HasMamba2(kind.mixer); });
  if (hybrid) HEARTH_TRY(HfMamba2(in, kMambaHfKeys));
  HEARTH_ASSIGN(c.n_experts, HfSize(in, "num_local_experts", 0));
  HEARTH_ASSIGN(const int shared, HfSize(in, "shared_intermediate_size"));
  if (c.n_experts == 0) {
    c.d_mlp = shared;
    in.plan.fused_gate_up = true;
    if (!hybrid) c.architecture = "granite";
    return {};
  }
  in.plan.fused_expert_gate_up = in.plan.fused_shared_gate_up = true;
  HEARTH_ASSIGN(c.n_experts_used, HfSize(in, "num_experts_per_tok"));
  c.d_expert = c.d_mlp;
  c.d_shared_expert = shared;
  return {};
}

void WriteHf(const ModelConfig& c, Json& json) {
  WriteHfGraniteScales(c, json);
  WriteHfMixers(c, "linear_attention", json);
  WriteHfMamba2(c, kMambaHfKeys, json);
  json["position_embedding_type"] = c.rope.rotary_dim > 0 ? "rope" : "nope";
  json["num_local_experts"] = c.n_experts;
  json["num_experts_per_tok"] = c.n_experts_used;
  json["intermediate_size"] = c.n_experts > 0 ? c.d_expert : c.d_mlp;
  json["shared_intermediate_size"] =
      c.n_experts > 0 ? c.d_shared_expert : c.d_mlp;
}

}  // namespace

constinit const Family kGraniteHybridFamily = {
    .architecture = "granitehybrid",
    .gguf_architecture = "granitehybrid",
    .hf_class = "GraniteMoeHybridForCausalLM",
    .hf_model_type = "granitemoehybrid",
    .gguf_names = kGgufNamesGranite,
    .hf_names = kHfNames,
    .gguf_interleaved = true,
    .gguf_keys = kGgufKeys,
    .gguf_splits_gate_up = true,
    .describe = Describe,
    .finish_gguf = FinishGguf,
    .finish_hf = FinishHf,
    .write_hf = WriteHf,
    .write_gguf = WriteGguf,
};

}  // namespace hearth
