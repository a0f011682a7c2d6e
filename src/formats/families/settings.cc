#include "formats/families/settings.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "formats/describe.h"
#include "formats/huggingface/hf_rope.h"
#include "formats/narrow.h"
#include "formats/rope_scaling.h"

namespace hearth {
namespace {

Result<float> ToScale(Result<double> value, const std::string& label,
                      const std::string& key) {
  if (!value.ok()) return value.error();
  const float scale = NarrowToFloat(*value);
  if (!std::isfinite(scale) || scale <= 0.0f) {
    return {Code::kCorrupt,
            label + ": " + Quoted(key) + " is not a positive number"};
  }
  return scale;
}

// Beyond any model.
constexpr int kGuessersMax = 16;

void SetWindows(ModelConfig& config, const std::vector<bool>& windowed,
                int window) {
  if (config.layer_kinds.empty()) SetLayerKinds(config, [](auto&, int) {});
  for (std::size_t i = 0; i < config.layer_kinds.size(); ++i) {
    config.layer_kinds[i].window = windowed[i] ? window : 0;
  }
}

}  // namespace

Error UnsupportedSetting(const std::string& label, const std::string& what) {
  return {Code::kUnsupported, label + ": " + what};
}

Result<int> HfSize(const HfInput& in, const char* key) {
  return NarrowToSize(JsonInt(in.json, key, in.label), in.label,
                      "member " + Quoted(key));
}

Result<int> HfSize(const HfInput& in, const char* key, int fallback) {
  return NarrowToSize(JsonInt(in.json, key, in.label, fallback), in.label,
                      "member " + Quoted(key));
}

Result<int> GgufSize(const GgufInput& in, const char* key, int fallback) {
  return NarrowToSize(in.file.Int(in.Key(key), fallback), in.file.label(),
                      "key " + Quoted(in.Key(key)));
}

Result<std::vector<int>> GgufPerLayer(const GgufInput& in, const char* key,
                                      int fallback) {
  const auto n = static_cast<std::size_t>(
      in.config.n_layers < 1 << 14 ? in.config.n_layers : 0);
  const GgufEntry* entry = in.file.Find(in.Key(key));
  if (entry == nullptr || entry->type != GgufType::kArray) {
    HEARTH_ASSIGN(const int number, GgufSize(in, key, fallback));
    return std::vector<int>(n, number);
  }
  HEARTH_ASSIGN(std::vector<std::int32_t> numbers,
                in.file.IntArray(in.Key(key)));
  // Blocks behind the last layer guess ahead.
  const bool possible =
      numbers.size() >= n &&
      std::all_of(numbers.begin(), numbers.end(), [](int x) { return x >= 0; });
  if (!possible) {
    return {Code::kCorrupt, in.file.label() + ": key " + Quoted(in.Key(key)) +
                                " is not one number for each layer"};
  }
  numbers.resize(n);
  return std::vector<int>(numbers.begin(), numbers.end());
}

double HfNumber(float value) {
  char text[32] = {};
  std::to_chars(text, text + sizeof(text) - 1, value);
  return std::strtod(text, nullptr);
}

Result<float> HfScale(const HfInput& in, const char* key, double fallback) {
  return ToScale(JsonNumber(in.json, key, in.label, fallback), in.label, key);
}

Result<float> GgufScale(const GgufInput& in, const char* key, double fallback) {
  return ToScale(in.file.Float(in.Key(key), fallback), in.file.label(),
                 in.Key(key));
}

Result<float> HfSoftcap(const HfInput& in, const char* key, double fallback) {
  const bool is_null = in.json.contains(key) && in.json.at(key).is_null();
  HEARTH_ASSIGN(const double cap,
                JsonNumber(in.json, key, in.label, is_null ? 0.0 : fallback));
  return NarrowToFloat(cap);
}

Result<void> HfRequire(const HfInput& in, const char* key, bool only) {
  HEARTH_ASSIGN(const bool value, JsonBool(in.json, key, in.label, only));
  if (value != only) {
    return UnsupportedSetting(in.label, std::string(key) + " = " +
                                            (value ? "true" : "false") +
                                            " is not supported");
  }
  return {};
}

Result<void> HfAttentionBias(const HfInput& in) {
  HEARTH_ASSIGN(in.plan.qkv_bias,
                JsonBool(in.json, "attention_bias", in.label, false));
  in.plan.o_bias = in.plan.qkv_bias;
  return {};
}

Result<void> HfMlpBias(const HfInput& in) {
  HEARTH_ASSIGN(in.plan.mlp_bias,
                JsonBool(in.json, "mlp_bias", in.label, false));
  return {};
}

void GgufBiases(const GgufInput& in) {
  in.plan.qkv_bias = in.tensors.Has(BiasName(kGgufNames, Role::kQ));
  in.plan.o_bias = in.tensors.Has(BiasName(kGgufNames, Role::kO));
  in.plan.mlp_bias = in.tensors.Has(BiasName(kGgufNames, Role::kUp));
}

Result<void> HfWindows(const HfInput& in, int window,
                       const std::function<bool(int layer)>& by_default) {
  const auto n = static_cast<std::size_t>(
      in.config.n_layers < 1 << 14 ? in.config.n_layers : 0);
  std::vector<bool> windowed(n);
  const Json* types = JsonFind(in.json, "layer_types");
  if (types == nullptr) {
    for (std::size_t i = 0; i < n; ++i) {
      windowed[i] = window > 0 && by_default(static_cast<int>(i));
    }
  } else if (!types->is_array() || types->size() != n) {
    return {Code::kCorrupt,
            in.label +
                ": member \"layer_types\" is not a list of one type "
                "for each layer"};
  } else {
    for (std::size_t i = 0; i < n; ++i) {
      const Json& type = (*types)[i];
      const std::string name =
          type.is_string() ? type.get<std::string>() : "another kind";
      windowed[i] = name == "sliding_attention";
      if (!windowed[i] && name != "full_attention") {
        return UnsupportedSetting(
            in.label,
            "layer_types: supported are \"full_attention\" and "
            "\"sliding_attention\", not " +
                Quoted(name));
      }
      if (windowed[i] && window == 0) {
        return {Code::kCorrupt,
                in.label +
                    ": layer_types has sliding layers, but there is no "
                    "sliding_window"};
      }
    }
  }
  if (std::find(windowed.begin(), windowed.end(), true) != windowed.end()) {
    SetWindows(in.config, windowed, window);
  }
  return {};
}

Result<void> HfOnlyExperts(const HfInput& in) {
  HEARTH_ASSIGN(const int step, HfSize(in, "decoder_sparse_step", 1));
  const Json* dense = JsonFind(in.json, "mlp_only_layers");
  if (step != 1 || (dense != nullptr && !dense->empty())) {
    return UnsupportedSetting(in.label,
                              "dense layers between those with experts "
                              "(decoder_sparse_step, mlp_only_layers) are not "
                              "supported");
  }
  return {};
}

Result<void> HfOptionalWindows(const HfInput& in) {
  HEARTH_ASSIGN(const bool use,
                JsonBool(in.json, "use_sliding_window", in.label, false));
  int window = 0;
  if (use) {
    HEARTH_ASSIGN(window, HfSize(in, "sliding_window", 4096));
  }
  HEARTH_ASSIGN(const int first, HfSize(in, "max_window_layers", 28));
  return HfWindows(in, window, [first](int layer) { return layer >= first; });
}

Result<void> HfRopesByKind(const HfInput& in, double base, double local_base) {
  ModelConfig& c = in.config;
  c.local_rope.rotary_dim = c.rope.rotary_dim = c.head_dim;
  const Json* parameters = JsonFind(in.json, "rope_parameters");
  if (parameters != nullptr && !parameters->is_object()) {
    return {Code::kCorrupt, in.label + ": rope_parameters is no object"};
  }
  if (parameters != nullptr &&
      (parameters->contains("full_attention") ||
       parameters->contains("sliding_attention") || local_base != 0)) {
    const Json* full = JsonFind(*parameters, "full_attention");
    const Json* sliding = JsonFind(*parameters, "sliding_attention");
    HEARTH_TRY(ReadHfRope(in.json, full, base, c.rope, in.label));
    return ReadHfRope(in.json, sliding, local_base != 0 ? local_base : base,
                      c.local_rope, in.label);
  }
  HEARTH_ASSIGN(const double theta,
                JsonNumber(in.json, "rope_theta", in.label, base));
  const Json* settings =
      parameters != nullptr ? parameters : JsonFind(in.json, "rope_scaling");
  HEARTH_TRY(ReadHfRope(in.json, settings, theta, c.rope, in.label));
  HEARTH_ASSIGN(const double local_theta,
                JsonNumber(in.json, "rope_local_base_freq", in.label,
                           local_base != 0 ? local_base : c.rope.scaling.base));
  return ReadHfRope(in.json, nullptr, local_theta, c.local_rope, in.label);
}

Result<void> GgufLocalRope(const GgufInput& in, int rotary_dim, double base) {
  RopeConfig& rope = in.config.local_rope;
  rope.rotary_dim = rotary_dim;
  rope.interleaved = in.config.rope.interleaved;
  rope.scaling.base = base;
  return BuildRope(rope, in.file.label());
}

void UseLocalRopeInWindows(ModelConfig& config) {
  for (LayerKind& kind : config.layer_kinds) {
    if (kind.window > 0) kind.rope = RopeUse::kLocal;
  }
}

Result<void> GgufWindows(const GgufInput& in, int period, int fallback) {
  HEARTH_ASSIGN(const int window,
                GgufSize(in, "attention.sliding_window", fallback));
  if (window == 0) return {};
  const auto n = static_cast<std::size_t>(
      in.config.n_layers < 1 << 14 ? in.config.n_layers : 0);
  std::vector<bool> windowed(n);
  const std::string pattern = in.Key("attention.sliding_window_pattern");
  const GgufEntry* entry = in.file.Find(pattern);
  if (entry != nullptr && entry->type == GgufType::kArray) {
    if (entry->element != GgufType::kBool || entry->count != n) {
      return {Code::kCorrupt, in.file.label() + ": key " + Quoted(pattern) +
                                  " is not one boolean for each layer"};
    }
    for (std::size_t i = 0; i < n; ++i) {
      windowed[i] = entry->value[i] != std::byte{0};
    }
  } else {
    HEARTH_ASSIGN(period,
                  GgufSize(in, "attention.sliding_window_pattern", period));
    for (std::size_t i = 0; i < n; ++i) {
      windowed[i] = period == 0 || static_cast<int>(i) % period < period - 1;
    }
  }
  if (std::find(windowed.begin(), windowed.end(), true) != windowed.end()) {
    SetWindows(in.config, windowed, window);
  }
  return {};
}

Result<void> GgufDropGuessers(const GgufInput& in) {
  HEARTH_ASSIGN(const int n, GgufSize(in, "nextn_predict_layers", 0));
  if (n > kGuessersMax || n >= in.config.n_layers) {
    return {Code::kCorrupt, in.file.label() + ": " + std::to_string(n) +
                                " blocks that guess ahead are impossible"};
  }
  for (int i = 0; i < n; ++i) {
    in.tensors.DropPrefix("blk." + std::to_string(--in.config.n_layers) + ".");
  }
  return {};
}

Result<void> GgufRouterRules(const GgufInput& in, bool normalize) {
  RouterRules& r = in.config.router_rules;
  HEARTH_ASSIGN(r.scale, GgufScale(in, "expert_weights_scale", 1));
  HEARTH_ASSIGN(r.normalize,
                in.file.Bool(in.Key("expert_weights_norm"), normalize));
  HEARTH_ASSIGN(r.n_groups, GgufSize(in, "expert_group_count", 1));
  if (r.n_groups == 0) r.n_groups = 1;
  HEARTH_ASSIGN(r.n_groups_used,
                GgufSize(in, "expert_group_used_count", r.n_groups));
  if (r.n_groups_used == 0) r.n_groups_used = r.n_groups;
  return {};
}

void WriteGgufRouterRules(const ModelConfig& config, const GgufKeyWriter& key) {
  const RouterRules& r = config.router_rules;
  key.number("expert_weights_scale", static_cast<double>(r.scale));
  key.flag("expert_weights_norm",
           config.router == RouterKind::kSigmoid
               ? r.normalize
               : config.router == RouterKind::kSoftmaxOfChosen);
  key.size("expert_group_count", r.n_groups);
  key.size("expert_group_used_count", r.n_groups_used);
  // 1: softmax; 2: sigmoid.
  key.size("expert_gating_func", config.router == RouterKind::kSigmoid ? 2 : 1);
}

Result<void> HfRouterRules(const HfInput& in) {
  RouterRules& r = in.config.router_rules;
  HEARTH_ASSIGN(r.scale, HfScale(in, "routed_scaling_factor", 1));
  HEARTH_ASSIGN(r.normalize,
                JsonBool(in.json, "norm_topk_prob", in.label, true));
  HEARTH_ASSIGN(r.n_groups, HfSize(in, "n_group", 1));
  HEARTH_ASSIGN(r.n_groups_used, HfSize(in, "topk_group", r.n_groups));
  if (r.n_groups == 0) r.n_groups = r.n_groups_used = 1;
  return {};
}

void WriteHfRouterRules(const ModelConfig& config, Json& json) {
  const RouterRules& r = config.router_rules;
  json["routed_scaling_factor"] = HfNumber(r.scale);
  json["norm_topk_prob"] = r.normalize;
  json["n_group"] = r.n_groups;
  json["topk_group"] = r.n_groups_used;
}

Result<void> GgufExperts(const GgufInput& in) {
  ModelConfig& c = in.config;
  HEARTH_ASSIGN(c.n_experts, GgufSize(in, "expert_count", 0));
  HEARTH_ASSIGN(c.n_experts_used, GgufSize(in, "expert_used_count", 0));
  HEARTH_ASSIGN(c.d_expert,
                GgufSize(in, "expert_feed_forward_length", c.d_mlp));
  if (c.n_experts == 0) {
    return {Code::kCorrupt, in.file.label() + ": key " +
                                Quoted(in.Key("expert_count")) +
                                " is missing or 0"};
  }
  return {};
}

}  // namespace hearth
