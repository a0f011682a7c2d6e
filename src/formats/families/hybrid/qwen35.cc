#include "formats/families/hybrid/qwen35.h"

#include "formats/families/all.h"
#include "formats/families/hybrid/mixers.h"
#include "formats/families/settings.h"

namespace hearth {
namespace {

constexpr int kPeriod = 4;  // every so many-th layer attends

constexpr std::string_view kGgufKeys[] = {"expert_count",
                                          "expert_shared_count"};

void Describe(ModelConfig& config, WeightPlan&) {
  config.qk_norm = QkNorm::kPerHead;
  config.attention_gate = true;
  config.router = RouterKind::kSoftmaxOfChosen;
}

bool IsNet(int layer, int period) { return (layer + 1) % period != 0; }

// --- GGUF --------------------------------------------------------------------
Result<void> FinishGguf(const GgufInput& in) {
  ModelConfig& c = in.config;
  HEARTH_TRY(GgufDropGuessers(in));
  HEARTH_ASSIGN(const int period,
                GgufSize(in, "full_attention_interval", kPeriod));
  if (period < 1) {
    return {Code::kCorrupt, in.file.label() + ": full_attention_interval is 0"};
  }
  SetLayerKinds(c, [period](LayerKind& kind, int i) {
    if (IsNet(i, period)) kind.mixer = Mixer::kDeltaNet;
  });
  DeltaNetShape& net = c.delta_net;
  HEARTH_ASSIGN(c.conv_taps, GgufSize(in, "ssm.conv_kernel", 4));
  HEARTH_ASSIGN(net.key_dim, GgufSize(in, "ssm.state_size", 0));
  HEARTH_ASSIGN(net.n_key_heads, GgufSize(in, "ssm.group_count", 0));
  HEARTH_ASSIGN(net.n_value_heads, GgufSize(in, "ssm.time_step_rank", 0));
  HEARTH_ASSIGN(const int width, GgufSize(in, "ssm.inner_size", 0));
  if (net.n_value_heads > 0) net.value_dim = width / net.n_value_heads;
  const auto has = [&](Role role) {
    return in.tensors.Has(WeightName(kQwen35GgufNames, role));
  };
  in.plan.fused_delta_net = has(Role::kDeltaQkvGate);
  in.plan.fused_delta_rates = has(Role::kDeltaRateDecay);
  return {};
}

// Converters put the value heads of one key head apart: value head h belongs to
// key head h % n.
Result<void> FinishTiledGguf(const GgufInput& in) {
  HEARTH_TRY(FinishGguf(in));
  in.config.delta_net.tiled = true;
  return {};
}

Result<void> AddGgufExperts(const GgufInput& in) {
  HEARTH_TRY(GgufExperts(in));
  HEARTH_ASSIGN(
      in.config.d_shared_expert,
      GgufSize(in, "expert_shared_feed_forward_length", in.config.d_expert));
  in.plan.fused_expert_gate_up =
      in.tensors.Has(WeightName(kQwen35GgufNames, Role::kExpertGateUp));
  return {};
}

Result<void> FinishMoeGguf(const GgufInput& in) {
  HEARTH_TRY(FinishTiledGguf(in));
  return AddGgufExperts(in);
}

Result<void> FinishNextGguf(const GgufInput& in) {
  HEARTH_TRY(FinishGguf(in));
  return AddGgufExperts(in);
}

// The first layer that attends, counted from 1.
int PeriodOf(const ModelConfig& config) {
  int period = 1;
  while (period < config.n_layers &&
         config.KindOf(period - 1).mixer != Mixer::kAttention) {
    ++period;
  }
  return period;
}

void WriteGguf(const ModelConfig& config, const GgufKeyWriter& key) {
  const DeltaNetShape& net = config.delta_net;
  key.size("full_attention_interval", PeriodOf(config));
  key.size("ssm.conv_kernel", config.conv_taps);
  key.size("ssm.state_size", net.key_dim);
  key.size("ssm.group_count", net.n_key_heads);
  key.size("ssm.time_step_rank", net.n_value_heads);
  key.size("ssm.inner_size", std::int64_t{net.n_value_heads} * net.value_dim);
  if (config.d_shared_expert > 0) {
    key.size("expert_shared_feed_forward_length", config.d_shared_expert);
  }
  // Of the three positions that a token of an image has; those of text are
  // equal, so that any cut does.
  const int pairs = config.rope.rotary_dim / 2;
  const int time = (pairs + 2) / 3, height = (pairs - time + 1) / 2;
  key.sizes("rope.dimension_sections",
            {time, height, pairs - time - height, 0});
}

// --- Hugging Face ------------------------------------------------------------
Result<void> FinishHf(const HfInput& in) {
  ModelConfig& c = in.config;
  in.plan.norm_offset = 1.0f;
  in.plan.decay_is_log = true;
  HEARTH_TRY(HfAttentionBias(in));
  HEARTH_ASSIGN(const int period,
                HfSize(in, "full_attention_interval", kPeriod));
  if (period < 1) {
    return {Code::kCorrupt, in.label + ": full_attention_interval is 0"};
  }
  HEARTH_TRY(HfMixers(in, {"linear_attention"}, Mixer::kDeltaNet,
                      [period](int layer) { return IsNet(layer, period); }));
  const auto& kinds = c.layer_kinds;
  for (int i = 0, n = PeriodOf(c); i < static_cast<int>(kinds.size()); ++i) {
    const bool is_net =
        kinds[static_cast<std::size_t>(i)].mixer == Mixer::kDeltaNet;
    if (is_net != IsNet(i, n)) {
      return UnsupportedSetting(in.label,
                                "layer_types: full attention in other layers "
                                "than every so many-th is not supported");
    }
  }
  DeltaNetShape& net = c.delta_net;
  HEARTH_ASSIGN(c.conv_taps, HfSize(in, "linear_conv_kernel_dim", 4));
  HEARTH_ASSIGN(net.key_dim, HfSize(in, "linear_key_head_dim", 128));
  HEARTH_ASSIGN(net.value_dim, HfSize(in, "linear_value_head_dim", 128));
  HEARTH_ASSIGN(net.n_key_heads, HfSize(in, "linear_num_key_heads", 16));
  HEARTH_ASSIGN(net.n_value_heads, HfSize(in, "linear_num_value_heads", 32));
  return {};
}

Result<void> FinishMoeHf(const HfInput& in) {
  HEARTH_TRY(FinishHf(in));
  ModelConfig& c = in.config;
  HEARTH_ASSIGN(c.n_experts, HfSize(in, "num_experts"));
  HEARTH_ASSIGN(c.n_experts_used, HfSize(in, "num_experts_per_tok"));
  HEARTH_ASSIGN(c.d_expert, HfSize(in, "moe_intermediate_size"));
  HEARTH_ASSIGN(c.d_shared_expert,
                HfSize(in, "shared_expert_intermediate_size"));
  if (c.n_experts == 0) {
    return UnsupportedSetting(in.label, "num_experts = 0");
  }
  HEARTH_TRY(HfRequire(in, "norm_topk_prob", true));
  return HfOnlyExperts(in);
}

Result<void> FinishNextHf(const HfInput& in) {
  in.plan.fused_delta_net = in.plan.fused_delta_rates = true;
  return FinishMoeHf(in);
}

// Some files have each expert's matrices, others one tensor of all.
void AdaptMoeHf(const TensorSet& tensors, WeightPlan& plan, NameScheme& names) {
  const NameScheme fused = WithNames(
      names,
      {{Role::kExpertGateUp, "model.layers.{}.mlp.experts.gate_up_proj#"},
       {Role::kExpertDown, "model.layers.{}.mlp.experts.down_proj#"}});
  if (!tensors.Has(WeightName(fused, Role::kExpertGateUp))) return;
  names = fused;
  plan.fused_expert_gate_up = true;
}

void WriteHf(const ModelConfig& config, Json& json) {
  const DeltaNetShape& net = config.delta_net;
  json["linear_conv_kernel_dim"] = config.conv_taps;
  json["linear_key_head_dim"] = net.key_dim;
  json["linear_value_head_dim"] = net.value_dim;
  json["linear_num_key_heads"] = net.n_key_heads;
  json["linear_num_value_heads"] = net.n_value_heads;
  WriteHfMixers(config, "linear_attention", json);
}

void WriteMoeHf(const ModelConfig& config, Json& json) {
  WriteHf(config, json);
  json["num_experts"] = config.n_experts;
  json["num_experts_per_tok"] = config.n_experts_used;
  json["moe_intermediate_size"] = config.d_expert;
  json["shared_expert_intermediate_size"] = config.d_shared_expert;
  json["norm_topk_prob"] = true;
}

}  // namespace

constinit const Family kQwen35Family = {
    .architecture = "qwen35",
    .gguf_architecture = "qwen35",
    .hf_class = "Qwen3_5ForCausalLM",
    .hf_model_type = "qwen3_5_text",
    .gguf_names = kQwen35GgufNames,
    .hf_names = kQwen35HfNames,
    .hf_head_dim = 256,
    .hf_partial_rotary = true,
    .hf_skipped_prefix = "mtp.",
    .gguf_keys = kGgufKeys,
    .gguf_tiled_delta_net = true,
    .describe = Describe,
    .finish_gguf = FinishTiledGguf,
    .finish_hf = FinishHf,
    .write_hf = WriteHf,
    .write_gguf = WriteGguf,
};

constinit const Family kQwen35MoeFamily = {
    .architecture = "qwen35moe",
    .gguf_architecture = "qwen35moe",
    .hf_class = "Qwen3_5MoeForCausalLM",
    .hf_model_type = "qwen3_5_moe_text",
    .gguf_names = kQwen35GgufNames,
    .hf_names = kQwen35HfNames,
    // Its config.json has no other width.
    .hf_keys = {.d_mlp = "moe_intermediate_size"},
    .hf_head_dim = 256,
    .hf_partial_rotary = true,
    .hf_skipped_prefix = "mtp.",
    .gguf_keys = kGgufKeys,
    .gguf_tiled_delta_net = true,
    .describe = Describe,
    .finish_gguf = FinishMoeGguf,
    .finish_hf = FinishMoeHf,
    .adapt_hf = AdaptMoeHf,
    .write_hf = WriteMoeHf,
    .write_gguf = WriteGguf,
};

constinit const Family kQwen3NextFamily = {
    .architecture = "qwen3next",
    .gguf_architecture = "qwen3next",
    .hf_class = "Qwen3NextForCausalLM",
    .hf_model_type = "qwen3_next",
    .gguf_names = kQwen35GgufNames,
    .hf_names = kQwen35HfNames,
    .hf_head_dim = 256,
    .hf_partial_rotary = true,
    .hf_skipped_prefix = "mtp.",
    .gguf_keys = kGgufKeys,
    .gguf_fused_delta_rates = true,
    .describe = Describe,
    .finish_gguf = FinishNextGguf,
    .finish_hf = FinishNextHf,
    .adapt_hf = AdaptMoeHf,
    .write_hf = WriteMoeHf,
    .write_gguf = WriteGguf,
};

}  // namespace hearth
