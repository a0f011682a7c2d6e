// config.json of a model: what huggingface_config.cc reads, written.
#include <cmath>
#include <optional>
#include <utility>

#include "convert/huggingface/hf_export.h"
#include "formats/families/settings.h"
#include "formats/huggingface/huggingface.h"
#include "formats/rope_scaling.h"
#include "model/identity.h"

namespace hearth {
namespace {

Error CannotSay(const LoadedModel& model, std::string_view hf_class,
                const std::string& what) {
  return {Code::kUnsupported, model.path + ": config.json of " +
                                  std::string(hf_class) + " cannot say " +
                                  what + " of this model"};
}

// --- Rotary settings ---------------------------------------------------------
bool SameFrequencies(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!(std::abs(a[i] - b[i]) <= 1e-6f * std::abs(a[i]))) return false;
  }
  return true;
}

// GGUF has llama 3's scaling as a list of divisors. The original context that
// gives them is looked for: what a divisor between the ends implies, and the
// powers of two. The ends are 1 and 4 turns in every model.
std::optional<RopeScaling> FindLlama3(const RopeConfig& rope) {
  RopeScaling s = rope.scaling;
  const std::vector<float> divisors = std::exchange(s.factors, {});
  auto plain = PlainFrequencies(s.base, rope.rotary_dim, "");
  if (!plain.ok() || plain->size() != divisors.size()) return std::nullopt;
  s.kind = RopeScalingKind::kLlama3;
  s.factor = 1;
  for (const float d : divisors) s.factor = std::max(s.factor, double{d});
  // A divisor was rounded twice; the factor is a number that people write.
  const double written = std::round(s.factor * 1000) / 1000;
  if (std::abs(written - s.factor) < 1e-6 * s.factor) s.factor = written;
  std::vector<double> contexts;
  for (std::size_t i = 0; i < divisors.size() && s.factor > 1; ++i) {
    const double kept =
        (1 / double{divisors[i]} - 1 / s.factor) / (1 - 1 / s.factor);
    if (kept < 1e-3 || kept > 1 - 1e-3) continue;
    const double turns =
        s.low_freq_factor + kept * (s.high_freq_factor - s.low_freq_factor);
    contexts.push_back(
        std::round(turns * 2 * std::acos(-1.0) / double{(*plain)[i]}));
  }
  for (double power = 16; power <= 1 << 20; power *= 2) {
    contexts.push_back(power);
  }
  for (const double context : contexts) {
    s.original_context = context;
    RopeConfig tried;
    tried.rotary_dim = rope.rotary_dim;
    tried.scaling = s;
    if (BuildRope(tried, "").ok() &&
        SameFrequencies(tried.inv_freq, rope.inv_freq)) {
      return s;
    }
  }
  return std::nullopt;
}

Json RopeJson(const RopeScaling& s) {
  Json json = {{"rope_type", "default"}, {"rope_theta", s.base}};
  const auto name = [&](const char* type) {
    json["rope_type"] = type;
    json["factor"] = s.factor;
    if (s.original_context > 0) {
      json["original_max_position_embeddings"] =
          std::llround(s.original_context);
    }
    if (s.attention_factor > 0) json["attention_factor"] = s.attention_factor;
  };
  switch (s.kind) {
    case RopeScalingKind::kLinear:
      json["rope_type"] = "linear";
      json["factor"] = s.factor;
      break;
    case RopeScalingKind::kLlama3:
      name("llama3");
      json["low_freq_factor"] = s.low_freq_factor;
      json["high_freq_factor"] = s.high_freq_factor;
      break;
    case RopeScalingKind::kYarn:
      name("yarn");
      json["beta_fast"] = s.beta_fast;
      json["beta_slow"] = s.beta_slow;
      json["truncate"] = s.truncate;
      break;
    case RopeScalingKind::kProportional:
      json["rope_type"] = "proportional";
      json["partial_rotary_factor"] = s.turning;
      break;
    case RopeScalingKind::kLongrope:
      name("longrope");
      json["short_factor"] = s.factors;
      json["long_factor"] = s.long_factors;
      break;
    default:
      break;
  }
  return json;
}

// The numbers of a head that may turn.
int TurningDim(const ModelConfig& c) {
  return c.latent.kv_rank > 0 ? c.latent.rope_dim : c.head_dim;
}

// The same as transformers before version 5 reads it; later ones prefer
// rope_parameters.
void AddOlderRope(const RopeScaling& s, const ModelConfig& c,
                  const Family& family, Json& json) {
  json["rope_theta"] = s.base;
  if (family.hf_rope_per_layer) {
    json["rope_local_base_freq"] = c.local_rope.scaling.base;
  }
  if (s.kind == RopeScalingKind::kProportional) return;
  if (c.rope.rotary_dim != TurningDim(c)) {
    json["partial_rotary_factor"] =
        static_cast<double>(c.rope.rotary_dim) / TurningDim(c);
  }
  if (s.kind == RopeScalingKind::kNone) return;
  const bool longrope = s.kind == RopeScalingKind::kLongrope;
  if (longrope && s.attention_factor > 0) return;  // they have no word for it
  Json scaling = RopeJson(s);
  scaling.erase("rope_theta");
  // The name of the type's member before version 4.43.
  scaling["type"] = scaling["rope_type"];
  if (longrope) {
    // These versions refuse any further member, and find the rest themselves.
    scaling = {{"type", "longrope"},
               {"short_factor", s.factors},
               {"long_factor", s.long_factors}};
  }
  json["rope_scaling"] = std::move(scaling);
}

void AddRope(const ModelConfig& c, const Family& family, Json& json) {
  if (c.rope.rotary_dim == 0) return;
  RopeScaling scaling = c.rope.scaling;
  if (scaling.kind == RopeScalingKind::kFactors) {
    if (const auto found = FindLlama3(c.rope)) scaling = *found;
  }
  Json rope = RopeJson(scaling);
  if (c.rope.rotary_dim != TurningDim(c) &&
      scaling.kind != RopeScalingKind::kProportional) {
    rope["partial_rotary_factor"] =
        static_cast<double>(c.rope.rotary_dim) / TurningDim(c);
  }
  if (family.hf_rope_per_layer) {
    rope = {{"full_attention", std::move(rope)},
            {"sliding_attention", RopeJson(c.local_rope.scaling)}};
  } else if (scaling.kind == RopeScalingKind::kLongrope) {
    json["original_max_position_embeddings"] =
        std::llround(scaling.original_context);
  }
  AddOlderRope(scaling, c, family, json);
  json["rope_parameters"] = std::move(rope);
}

// --- The rest ----------------------------------------------------------------
void AddLayerTypes(const ModelConfig& c, const Family& family, Json& json) {
  int window = 0;
  Json types = Json::array();
  for (int i = 0; i < c.n_layers; ++i) {
    const int w = c.KindOf(i).window;
    window = std::max(window, w);
    types.push_back(w > 0 ? "sliding_attention" : "full_attention");
  }
  // Without a list, families with a pattern of their own would apply it.
  if (window == 0 && family.gguf_window_period == 0) return;
  json["layer_types"] = std::move(types);
  if (window > 0) {
    json["sliding_window"] = window;
    json["use_sliding_window"] = true;
  }
}

const char* ActivationName(MlpKind kind) {
  switch (kind) {
    case MlpKind::kGeluErf:
      return "gelu";
    case MlpKind::kGeluTanh:
      return "gelu_new";
    case MlpKind::kGatedGeluTanh:
      return "gelu_pytorch_tanh";
    case MlpKind::kReluSquared:
      return "relu2";
    case MlpKind::kGatedSilu:
    case MlpKind::kClampedSwiglu:
      break;
  }
  return "silu";
}

// The family whose class has this forward pass: llama's has no window, and
// GPT-2's is that of the from-scratch models.
const Family* FamilyFor(const ModelConfig& c) {
  if (c.architecture == "gpt") return FamilyNamed("gpt2");
  if (c.architecture == "llama" && c.KindOf(0).window > 0) {
    return FamilyNamed("mistral");
  }
  if (c.architecture == "olmo2" && c.KindOf(0).window > 0) {
    return FamilyNamed("olmo3");
  }
  return FamilyNamed(c.architecture);
}

struct Biases {
  bool qkv, o, mlp;
};
Biases BiasesOf(const LoadedModel& model) {
  Biases biases{};
  for (const LayerWeights& w : model.weights.layers) {
    const MlpWeights& mlp = w.experts.empty() ? w.mlp : w.experts[0];
    biases.qkv = biases.qkv || !w.q.bias.empty() || !w.qkv.bias.empty();
    biases.o = biases.o || !w.o.bias.empty();
    biases.mlp = biases.mlp || !mlp.down.bias.empty();
  }
  return biases;
}

Json Write(const LoadedModel& model, const Family& family) {
  const ModelConfig& c = model.config;
  const HfKeys& keys = family.hf_keys;
  Json json = {{"architectures", {family.hf_class}},
               {"model_type", family.hf_model_type},
               {keys.d_model, c.d_model},
               {keys.n_layers, c.n_layers},
               {keys.n_heads, c.n_heads},
               {keys.d_mlp, c.d_mlp},
               {keys.context, c.context_length},
               {keys.norm_eps, HfNumber(c.norm_eps)},
               {keys.activation, ActivationName(c.mlp)},
               {"vocab_size", c.vocab_size},
               {"tie_word_embeddings", c.tied_head}};
  if (!c.learned_positions) {
    json["num_key_value_heads"] = c.n_kv_heads;
    json["head_dim"] = c.head_dim;
    const Biases biases = BiasesOf(model);
    // Qwen 2's class has biases of q, k and v and no member that says so.
    if (biases.qkv == biases.o || family.hf_bias_not_of_o) {
      json["attention_bias"] = biases.qkv;
    }
    if (biases.mlp && c.n_experts == 0) json["mlp_bias"] = true;
    AddRope(c, family, json);
    AddLayerTypes(c, family, json);
  }
  if (family.write_hf != nullptr) family.write_hf(c, json);
  if (model.bos_id >= 0) json["bos_token_id"] = model.bos_id;
  if (!model.eos_ids.empty()) json["eos_token_id"] = model.eos_ids;
  return json;
}

bool SameRope(const RopeConfig& a, const RopeConfig& b) {
  return a.rotary_dim == b.rotary_dim &&
         SameFrequencies(a.inv_freq, b.inv_freq) &&
         SameFrequencies(a.long_inv_freq, b.long_inv_freq) &&
         std::abs(a.cos_sin_factor - b.cos_sin_factor) <= 1e-6f;
}

// What the written file says otherwise than the model; empty: nothing.
std::string Difference(const ModelConfig& model, const ModelConfig& read) {
  const std::pair<const char*, bool> same[] = {
      {"the activation", model.mlp == read.mlp},
      {"the norm epsilon", model.norm_eps == read.norm_eps},
      {"a norm of another kind", model.norm == read.norm},
      {"where its norms stand", model.norm_placement == read.norm_placement},
      {"fewer KV heads than heads", model.n_kv_heads == read.n_kv_heads},
      {"the head size", model.head_dim == read.head_dim},
      {"the rope settings", SameRope(model.rope, read.rope) &&
                                SameRope(model.local_rope, read.local_rope)},
      {"the scale of scores", model.attention_scale == read.attention_scale},
      {"soft caps", model.attention_softcap == read.attention_softcap &&
                        model.logit_softcap == read.logit_softcap},
      {"the multipliers", model.embedding_scale == read.embedding_scale &&
                              model.residual_scale == read.residual_scale &&
                              model.logit_scale == read.logit_scale},
      {"the experts", model.n_experts == read.n_experts &&
                          model.n_experts_used == read.n_experts_used &&
                          model.d_expert == read.d_expert &&
                          model.router == read.router}};
  for (const auto& [what, equal] : same) {
    if (!equal) return what;
  }
  for (int i = 0; i < model.n_layers; ++i) {
    if (model.KindOf(i) != read.KindOf(i)) return "layers that differ";
  }
  // Everything else: as identities, but for what is said in another way.
  ModelConfig a = model;
  a.architecture = read.architecture;
  a.delta_net.tiled = read.delta_net.tiled;
  a.rope = read.rope;
  a.local_rope = read.local_rope;
  return ModelId(a, {}) == ModelId(read, {}) ? "" : "the forward pass";
}

}  // namespace

Result<HfDescription> DescribeForHf(const LoadedModel& model) {
  HfDescription out;
  out.family = FamilyFor(model.config);
  if (out.family == nullptr) {
    return {Code::kUnsupported, model.path + ": architecture " +
                                    model.config.architecture +
                                    " has no Hugging Face form"};
  }
  out.json = Write(model, *out.family);
  HEARTH_ASSIGN(const HuggingFaceConfig read,
                ReadHuggingFaceConfig(out.json, model.path));
  out.plan = read.plan;
  const std::string difference = Difference(model.config, read.config);
  if (!difference.empty()) {
    return CannotSay(model, out.family->hf_class, difference);
  }
  const Biases biases = BiasesOf(model);
  if (biases.qkv != out.plan.qkv_bias || biases.o != out.plan.o_bias ||
      biases.mlp != out.plan.mlp_bias) {
    return CannotSay(model, out.family->hf_class, "the biases");
  }
  return out;
}

}  // namespace hearth
