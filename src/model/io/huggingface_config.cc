#include <algorithm>
#include <cmath>
#include <vector>

#include "model/io/describe.h"
#include "model/io/huggingface.h"
#include "model/io/narrow.h"
#include "model/io/rope_scaling.h"

namespace hearth {
namespace {

Error Unsupported(const std::string& label, const std::string& what) {
  return {Code::kUnsupported, label + ": " + what};
}

// A size that must fit an int; its range is CheckConfig's business.
Result<int> ToSize(Result<std::int64_t> value, const char* key,
                   const std::string& label) {
  if (!value.ok()) return value.error();
  if (*value < 0 || *value > INT32_MAX) {
    return {Code::kCorrupt, label + ": member \"" + key +
                                "\" has the impossible value " +
                                std::to_string(*value)};
  }
  return static_cast<int>(*value);
}

Result<int> Size(const Json& json, const char* key, const std::string& label) {
  return ToSize(JsonInt(json, key, label), key, label);
}

Result<int> Size(const Json& json, const char* key, const std::string& label,
                 int fallback) {
  return ToSize(JsonInt(json, key, label, fallback), key, label);
}

Result<const Family*> FindFamily(const Json& json, const std::string& label) {
  const Json* classes = JsonFind(json, "architectures");
  if (classes == nullptr || !classes->is_array() || classes->empty() ||
      !classes->front().is_string()) {
    return {Code::kCorrupt,
            label + ": member \"architectures\" is not a list of names"};
  }
  const std::string& name = classes->front().get_ref<const std::string&>();
  const Family* family = FamilyOfHfClass(name);
  if (family == nullptr) {
    std::string known;
    for (const Family& f : Families()) {
      known += (known.empty() ? "" : ", ") + std::string(f.hf_class);
    }
    return Unsupported(label, "architecture " + Quoted(name) +
                                  " is not supported; supported are " + known);
  }
  return family;
}

// The rope settings in one place, whichever style the file is in: transformers
// before 5 has rope_theta beside an optional rope_scaling; 5 has both in
// rope_parameters.
struct RopeSettings {
  double theta = 10000;
  std::string type = "default";
  Json parameters = Json::object();  // factor and so on
};

Result<RopeSettings> ReadRopeSettings(const Json& json,
                                      const std::string& label) {
  RopeSettings rope;
  const Json* scaling = JsonFind(json, "rope_parameters");
  if (scaling == nullptr) scaling = JsonFind(json, "rope_scaling");
  HEARTH_ASSIGN(rope.theta, JsonNumber(json, "rope_theta", label, 10000));
  HEARTH_ASSIGN(const double part,
                JsonNumber(json, "partial_rotary_factor", label, 1));
  double inner_part = 1;
  if (scaling != nullptr) {
    if (!scaling->is_object()) {
      return {Code::kCorrupt, label + ": the rope settings are not an object"};
    }
    for (const auto& [key, value] : scaling->items()) {
      if (value.is_object()) {
        return Unsupported(label, "rope settings for each kind of layer (" +
                                      Quoted(key) + ") are not supported");
      }
    }
    rope.parameters = *scaling;
    HEARTH_ASSIGN(const std::string old_type,
                  JsonText(*scaling, "type", label, "default"));
    HEARTH_ASSIGN(rope.type, JsonText(*scaling, "rope_type", label, old_type));
    HEARTH_ASSIGN(rope.theta,
                  JsonNumber(*scaling, "rope_theta", label, rope.theta));
    HEARTH_ASSIGN(inner_part,
                  JsonNumber(*scaling, "partial_rotary_factor", label, 1));
  }
  if (part != 1 || inner_part != 1) {
    return Unsupported(label,
                       "partial_rotary_factor other than 1 is not supported");
  }
  return rope;
}

// A number without which a rope type means nothing.
Result<double> Needed(const Json& object, const char* key,
                      const std::string& label) {
  if (JsonFind(object, key) == nullptr) {
    return {Code::kCorrupt,
            label + ": rope settings: member \"" + key + "\" is missing"};
  }
  return JsonNumber(object, key, label, 0);
}

Result<void> ReadRope(const Json& json, const std::string& label,
                      ModelConfig& config) {
  HEARTH_ASSIGN(const RopeSettings settings, ReadRopeSettings(json, label));
  RopeConfig& rope = config.rope;
  rope.rotary_dim = config.head_dim;
  rope.interleaved = false;
  HEARTH_ASSIGN(rope.inv_freq,
                PlainFrequencies(settings.theta, rope.rotary_dim, label));
  const Json& p = settings.parameters;
  if (settings.type == "default") return {};
  if (settings.type == "linear") {
    HEARTH_ASSIGN(const double factor, Needed(p, "factor", label));
    return ScaleLinear(factor, rope.inv_freq, label);
  }
  if (settings.type == "llama3") {
    Llama3Scaling s;
    HEARTH_ASSIGN(s.factor, Needed(p, "factor", label));
    HEARTH_ASSIGN(s.low_freq_factor, Needed(p, "low_freq_factor", label));
    HEARTH_ASSIGN(s.high_freq_factor, Needed(p, "high_freq_factor", label));
    HEARTH_ASSIGN(s.original_context,
                  Needed(p, "original_max_position_embeddings", label));
    return ScaleLlama3(s, rope.inv_freq, label);
  }
  return Unsupported(label, "rope type " + Quoted(settings.type) +
                                " is not supported; supported are default, "
                                "linear and llama3");
}

Result<void> ReadShapes(const Json& json, const std::string& label,
                        ModelConfig& c) {
  HEARTH_ASSIGN(c.n_layers, Size(json, "num_hidden_layers", label));
  HEARTH_ASSIGN(c.d_model, Size(json, "hidden_size", label));
  HEARTH_ASSIGN(c.n_heads, Size(json, "num_attention_heads", label));
  HEARTH_ASSIGN(c.n_kv_heads,
                Size(json, "num_key_value_heads", label, c.n_heads));
  HEARTH_ASSIGN(c.d_mlp, Size(json, "intermediate_size", label));
  HEARTH_ASSIGN(c.vocab_size, Size(json, "vocab_size", label));
  HEARTH_ASSIGN(c.context_length, Size(json, "max_position_embeddings", label));
  if (JsonFind(json, "head_dim") == nullptr && c.n_heads > 0 &&
      c.d_model % c.n_heads != 0) {
    return {Code::kCorrupt,
            label +
                ": hidden_size is no multiple of num_attention_heads and "
                "head_dim is missing"};
  }
  const int split = c.n_heads > 0 ? c.d_model / c.n_heads : 0;
  HEARTH_ASSIGN(c.head_dim, Size(json, "head_dim", label, split));
  c.attention_scale =
      static_cast<float>(1.0 / std::sqrt(std::max(1, c.head_dim)));
  HEARTH_ASSIGN(const double eps,
                JsonNumber(json, "rms_norm_eps", label, 1e-6));
  c.norm_eps = NarrowToFloat(eps);
  HEARTH_ASSIGN(c.tied_head,
                JsonBool(json, "tie_word_embeddings", label, false));
  return {};
}

Result<void> RefuseOtherArithmetic(const Json& json, const std::string& label) {
  HEARTH_ASSIGN(const std::string act,
                JsonText(json, "hidden_act", label, "silu"));
  if (act != "silu") {
    return Unsupported(
        label, "hidden_act " + Quoted(act) + " is not supported, only silu");
  }
  if (JsonFind(json, "quantization_config") != nullptr) {
    return Unsupported(label,
                       "quantization_config: quantised Hugging Face "
                       "models are not supported; use GGUF");
  }
  return {};
}

}  // namespace

Result<HuggingFaceConfig> ReadHuggingFaceConfig(const Json& json,
                                                const std::string& label) {
  if (!json.is_object()) {
    return {Code::kCorrupt, label + ": not a JSON object"};
  }
  HuggingFaceConfig out;
  HEARTH_ASSIGN(out.family, FindFamily(json, label));
  ModelConfig& config = out.config;
  config.architecture = std::string(out.family->architecture);
  HEARTH_TRY(RefuseOtherArithmetic(json, label));
  HEARTH_TRY(ReadShapes(json, label, config));
  HEARTH_TRY(ReadRope(json, label, config));
  HEARTH_TRY(out.family->finish_hf(json, label, config, out.plan));
  HEARTH_TRY(CheckConfig(config, label));
  config.name = NameFromShape(config);
  return out;
}

}  // namespace hearth
