// Nemotron-H and Nemotron 3 Nano: every layer is one half alone behind one
// norm: a Mamba-2 mixer, attention without positions, a dense network or
// experts. GGUF has two names for it, with experts and without.
#include "formats/families/all.h"
#include "formats/families/hybrid/mamba2.h"
#include "formats/families/settings.h"

namespace hearth {
namespace {

constexpr char kDense[] = "nemotron_h";
constexpr char kMoe[] = "nemotron_h_moe";

constexpr NameScheme kGgufNamesH = WithGgufMamba2(
    WithNames(kGgufNames, {{Role::kMlpNorm, "blk.{}.attn_norm"}}));

constexpr NameScheme kHfNames = WithNames(
    kHuggingFaceNames,
    {{Role::kTokenEmbedding, "backbone.embeddings"},
     {Role::kFinalNorm, "backbone.norm_f"},
     {Role::kAttentionNorm, "backbone.layers.{}.norm"},
     {Role::kMlpNorm, "backbone.layers.{}.norm"},
     {Role::kQ, "backbone.layers.{}.mixer.q_proj"},
     {Role::kK, "backbone.layers.{}.mixer.k_proj"},
     {Role::kV, "backbone.layers.{}.mixer.v_proj"},
     {Role::kO, "backbone.layers.{}.mixer.o_proj"},
     {Role::kUp, "backbone.layers.{}.mixer.up_proj"},
     {Role::kDown, "backbone.layers.{}.mixer.down_proj"},
     {Role::kRouter, "backbone.layers.{}.mixer.gate"},
     {Role::kRouterBias,
      "backbone.layers.{}.mixer.gate.e_score_correction_bias#"},
     {Role::kExpertUp, "backbone.layers.{}.mixer.experts.{}.up_proj"},
     {Role::kExpertDown, "backbone.layers.{}.mixer.experts.{}.down_proj"},
     {Role::kSharedUp, "backbone.layers.{}.mixer.shared_experts.up_proj"},
     {Role::kSharedDown, "backbone.layers.{}.mixer.shared_experts.down_proj"},
     {Role::kMambaIn, "backbone.layers.{}.mixer.in_proj"},
     {Role::kMambaTaps, "backbone.layers.{}.mixer.conv1d"},
     {Role::kMambaScale, "backbone.layers.{}.mixer.A_log#"},
     {Role::kMambaStep, "backbone.layers.{}.mixer.dt#"},
     {Role::kMambaSkip, "backbone.layers.{}.mixer.D#"},
     {Role::kMambaNorm, "backbone.layers.{}.mixer.norm"},
     {Role::kMambaOut, "backbone.layers.{}.mixer.out_proj"}});

constexpr HfMamba2Keys kKeys = {"mamba_num_heads", "mamba_head_dim",
                                "n_groups",        "ssm_state_size",
                                "conv_kernel",     "use_conv_bias"};

constexpr std::string_view kGgufKeys[] = {
    "attention.head_count_kv", "feed_forward_length", "expert_count",
    "expert_shared_count", "expert_weights_scale"};

void Describe(ModelConfig& config, WeightPlan&) {
  config.router = RouterKind::kSigmoid;
  config.router_rules.bias = true;
  config.router_rules.groups_by_two = true;
  config.shared_expert_gate = false;
}

// What a layer consists of, in the letters of hybrid_override_pattern.
bool SetKind(char letter, LayerKind& kind) {
  switch (letter) {
    case 'M':
      kind.mixer = Mixer::kMamba2;
      kind.ffn = Ffn::kNone;
      return true;
    case '*':
      kind.ffn = Ffn::kNone;
      return true;
    case '-':
      kind.mixer = Mixer::kNone;
      kind.ffn = Ffn::kDense;
      return true;
    case 'E':
      kind.mixer = Mixer::kNone;
      return true;
    default:
      return false;
  }
}

char LetterOf(const ModelConfig& c, int layer) {
  if (HasMamba2(c.KindOf(layer).mixer)) return 'M';
  if (Attends(c.KindOf(layer).mixer)) return '*';
  return c.HasExperts(layer) ? 'E' : '-';
}

// --- GGUF --------------------------------------------------------------------
Result<void> FinishGguf(const GgufInput& in) {
  ModelConfig& c = in.config;
  c.rope = {};
  HEARTH_TRY(GgufDropGuessers(in));
  HEARTH_ASSIGN(const std::vector<int> heads,
                GgufPerLayer(in, "attention.head_count_kv", 0));
  HEARTH_ASSIGN(const std::vector<int> widths,
                GgufPerLayer(in, "feed_forward_length", 0));
  int n_dense = 0;
  SetLayerKinds(c, [&](LayerKind& kind, int i) {
    const auto at = static_cast<std::size_t>(i);
    const bool routes =
        in.tensors.Has(WeightName(kGgufNamesH, Role::kRouter, i));
    SetKind(heads[at] > 0     ? '*'
            : widths[at] == 0 ? 'M'
            : routes          ? 'E'
                              : '-',
            kind);
    if (kind.ffn == Ffn::kDense && n_dense++ == 0) c.d_mlp = widths[at];
    if (kind.ffn == Ffn::kDense && widths[at] != c.d_mlp) {
      kind.d_mlp = widths[at];
    }
    if (heads[at] > 0 && heads[at] != c.n_kv_heads) {
      kind.n_kv_heads = heads[at];
    }
  });
  HEARTH_TRY(GgufMamba2(in, kGgufNamesH));
  GgufBiases(in);
  HEARTH_ASSIGN(const int n_experts, GgufSize(in, "expert_count", 0));
  if (n_experts == 0) return {};
  if (in.file.Has(in.Key("moe_latent_size"))) {
    return UnsupportedSetting(in.file.label(),
                              "experts behind a latent (moe_latent_size)");
  }
  HEARTH_TRY(GgufExperts(in));
  HEARTH_TRY(GgufRouterRules(in, true));
  HEARTH_ASSIGN(c.d_shared_expert,
                GgufSize(in, "expert_shared_feed_forward_length", 0));
  return {};
}

void WriteGguf(const ModelConfig& c, const GgufKeyWriter& key) {
  std::vector<std::int32_t> heads, widths;
  for (int i = 0; i < c.n_layers; ++i) {
    const char letter = LetterOf(c, i);
    heads.push_back(letter == '*' ? c.KvHeads(i) : 0);
    widths.push_back(letter == '-'   ? c.MlpWidth(i)
                     : letter == 'E' ? c.d_expert
                                     : 0);
  }
  key.sizes("attention.head_count_kv", std::move(heads));
  key.sizes("feed_forward_length", std::move(widths));
  WriteGgufMamba2(c, key);
  if (c.n_experts == 0) return;
  WriteGgufRouterRules(c, key);
  key.size("expert_shared_count", c.d_shared_expert > 0 ? 1 : 0);
  key.size("expert_shared_feed_forward_length", c.d_shared_expert);
}

// --- Hugging Face ------------------------------------------------------------
Result<char> LetterOf(const Json& type, const std::string& label) {
  const std::string name = type.is_string() ? type.get<std::string>() : "";
  if (name == "mamba" || name == "linear_attention") return 'M';
  if (name == "attention" || name == "full_attention") return '*';
  if (name == "mlp") return '-';
  if (name == "moe") return 'E';
  return UnsupportedSetting(label, "layers_block_type: unknown type " + name);
}

Result<void> ReadLayers(const HfInput& in) {
  std::string letters;
  const Json* types = JsonFind(in.json, "layers_block_type");
  if (types != nullptr && types->is_array()) {
    for (const Json& type : *types) {
      HEARTH_ASSIGN(const char letter, LetterOf(type, in.label));
      letters += letter;
    }
  } else {
    HEARTH_ASSIGN(letters,
                  JsonText(in.json, "hybrid_override_pattern", in.label, ""));
  }
  bool known = true;
  SetLayerKinds(in.config, [&](LayerKind& kind, int i) {
    const auto at = static_cast<std::size_t>(i);
    known = known && at < letters.size() && SetKind(letters[at], kind);
  });
  if (!known || letters.size() != in.config.layer_kinds.size()) {
    return {Code::kCorrupt,
            in.label +
                ": the kinds of layers are not one of M, *, - and E for each"};
  }
  return {};
}

Result<void> FinishHf(const HfInput& in) {
  ModelConfig& c = in.config;
  c.rope = {};
  HEARTH_ASSIGN(const std::string activation,
                JsonText(in.json, "mlp_hidden_act", in.label, "relu2"));
  if (activation != "relu2") {
    return UnsupportedSetting(in.label, "mlp_hidden_act other than relu2");
  }
  for (const char* key : {"use_bias", "mlp_bias", "attention_bias"}) {
    HEARTH_TRY(HfRequire(in, key, false));
  }
  HEARTH_TRY(ReadLayers(in));
  HEARTH_TRY(HfMamba2(in, kKeys));
  bool has_experts = false;
  for (const LayerKind& kind : c.layer_kinds) {
    has_experts =
        has_experts || (kind.mixer == Mixer::kNone && kind.ffn == Ffn::kUsual);
  }
  c.architecture = has_experts ? kMoe : kDense;
  if (!has_experts) {
    c.router_rules = {};
    return {};
  }
  if (JsonFind(in.json, "moe_latent_size") != nullptr) {
    return UnsupportedSetting(in.label,
                              "experts behind a latent (moe_latent_size)");
  }
  HEARTH_ASSIGN(c.n_experts, HfSize(in, "n_routed_experts"));
  HEARTH_ASSIGN(c.n_experts_used, HfSize(in, "num_experts_per_tok"));
  HEARTH_ASSIGN(c.d_expert, HfSize(in, "moe_intermediate_size"));
  HEARTH_ASSIGN(c.d_shared_expert,
                HfSize(in, "moe_shared_expert_intermediate_size", 0));
  return HfRouterRules(in);
}

void WriteHf(const ModelConfig& c, Json& json) {
  Json types = Json::array();
  for (int i = 0; i < c.n_layers; ++i) {
    const char letter = LetterOf(c, i);
    types.push_back(letter == 'M'   ? "linear_attention"
                    : letter == '*' ? "full_attention"
                    : letter == '-' ? "mlp"
                                    : "moe");
  }
  json["layers_block_type"] = std::move(types);
  json["mlp_hidden_act"] = "relu2";
  WriteHfMamba2(c, kKeys, json);
  if (c.n_experts == 0) return;
  json["n_routed_experts"] = c.n_experts;
  json["num_experts_per_tok"] = c.n_experts_used;
  json["moe_intermediate_size"] = c.d_expert;
  json["n_shared_experts"] = c.d_shared_expert > 0 ? 1 : 0;
  json["moe_shared_expert_intermediate_size"] = c.d_shared_expert;
  WriteHfRouterRules(c, json);
}

constexpr Family Make(std::string_view architecture) {
  return {
      .architecture = architecture,
      .gguf_architecture = architecture,
      .hf_class = "NemotronHForCausalLM",
      .hf_model_type = "nemotron_h",
      .gguf_names = kGgufNamesH,
      .hf_names = kHfNames,
      .hf_keys = {.layer_list = "layers_block_type",
                  .norm_eps = "layer_norm_epsilon"},
      .mlp = MlpKind::kReluSquared,
      .hf_skipped_prefix = "mtp.",
      .gguf_keys = kGgufKeys,
      .describe = Describe,
      .finish_gguf = FinishGguf,
      .finish_hf = FinishHf,
      .write_hf = WriteHf,
      .write_gguf = WriteGguf,
  };
}

}  // namespace

constinit const Family kNemotronHFamily = Make(kDense);
constinit const Family kNemotronHMoeFamily = Make(kMoe);

}  // namespace hearth
