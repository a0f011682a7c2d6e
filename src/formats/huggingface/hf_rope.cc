#include "formats/huggingface/hf_rope.h"

#include <vector>

#include "formats/describe.h"
#include "formats/narrow.h"
#include "formats/rope_scaling.h"

namespace hearth {
namespace {

Error Unsupported(const std::string& label, const std::string& what) {
  return {Code::kUnsupported, label + ": " + what};
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

// From the rope settings, or else from the whole configuration.
Result<double> OriginalContext(const Json& json, const Json& settings,
                               const char* fallback, const std::string& label) {
  constexpr char kKey[] = "original_max_position_embeddings";
  for (const Json* object : {&settings, &json}) {
    if (JsonFind(*object, kKey) != nullptr) {
      return JsonNumber(*object, kKey, label, 0);
    }
  }
  return Needed(json, fallback, label);
}

Result<std::vector<float>> Factors(const Json& settings, const char* key,
                                   const std::string& label) {
  const Json* list = JsonFind(settings, key);
  std::vector<float> factors;
  bool good = list != nullptr && list->is_array();
  for (std::size_t i = 0; good && i < list->size(); ++i) {
    good = (*list)[i].is_number();
    if (good) factors.push_back(NarrowToFloat((*list)[i].get<double>()));
  }
  if (!good) {
    return {Code::kCorrupt, label + ": rope settings: member \"" + key +
                                "\" is not a list of numbers"};
  }
  return factors;
}

Result<void> ReadYarn(const Json& json, const Json& p, RopeScaling& s,
                      const std::string& label) {
  s.kind = RopeScalingKind::kYarn;
  HEARTH_ASSIGN(s.factor, Needed(p, "factor", label));
  HEARTH_ASSIGN(s.beta_fast, JsonNumber(p, "beta_fast", label, 32));
  HEARTH_ASSIGN(s.beta_slow, JsonNumber(p, "beta_slow", label, 1));
  HEARTH_ASSIGN(s.truncate, JsonBool(p, "truncate", label, true));
  HEARTH_ASSIGN(s.original_context,
                OriginalContext(json, p, "max_position_embeddings", label));
  HEARTH_ASSIGN(s.attention_factor,
                JsonNumber(p, "attention_factor", label, 0));
  // Together they say what cos and sin are multiplied by.
  HEARTH_ASSIGN(const double mscale, JsonNumber(p, "mscale", label, 0));
  HEARTH_ASSIGN(const double all, JsonNumber(p, "mscale_all_dim", label, 0));
  if (mscale != 0 && all != 0 && s.attention_factor == 0) {
    s.attention_factor = YarnAttentionFactor(s.factor, mscale) /
                         YarnAttentionFactor(s.factor, all);
  }
  return {};
}

Result<void> ReadLongrope(const Json& json, const Json& p, RopeScaling& s,
                          const std::string& label) {
  s.kind = RopeScalingKind::kLongrope;
  HEARTH_ASSIGN(s.factors, Factors(p, "short_factor", label));
  HEARTH_ASSIGN(s.long_factors, Factors(p, "long_factor", label));
  HEARTH_ASSIGN(s.original_context,
                OriginalContext(json, p, "max_position_embeddings", label));
  HEARTH_ASSIGN(const double context,
                Needed(json, "max_position_embeddings", label));
  HEARTH_ASSIGN(
      s.factor,
      JsonNumber(p, "factor", label,
                 s.original_context > 0 ? context / s.original_context : 0));
  HEARTH_ASSIGN(s.attention_factor,
                JsonNumber(p, "attention_factor", label, 0));
  for (const char* key : {"short_mscale", "long_mscale"}) {
    if (JsonFind(p, key) != nullptr) {
      return Unsupported(
          label, std::string("longrope with ") + key + " is not supported");
    }
  }
  return {};
}

Result<void> ReadLlama3(const Json& p, RopeScaling& s,
                        const std::string& label) {
  s.kind = RopeScalingKind::kLlama3;
  HEARTH_ASSIGN(s.factor, Needed(p, "factor", label));
  HEARTH_ASSIGN(s.low_freq_factor, Needed(p, "low_freq_factor", label));
  HEARTH_ASSIGN(s.high_freq_factor, Needed(p, "high_freq_factor", label));
  HEARTH_ASSIGN(s.original_context,
                Needed(p, "original_max_position_embeddings", label));
  return {};
}

}  // namespace

Result<void> ReadHfRope(const Json& json, const Json* settings, double theta,
                        RopeConfig& rope, const std::string& label) {
  const Json none = Json::object();
  const Json& p = settings != nullptr ? *settings : none;
  if (!p.is_object()) {
    return {Code::kCorrupt, label + ": the rope settings are not an object"};
  }
  for (const auto& [key, value] : p.items()) {
    if (value.is_object()) {
      return Unsupported(label, "rope settings for each kind of layer (" +
                                    Quoted(key) + ") are not supported");
    }
  }
  RopeScaling& s = rope.scaling;
  HEARTH_ASSIGN(s.base, JsonNumber(p, "rope_theta", label, theta));
  HEARTH_ASSIGN(const std::string old_type,
                JsonText(p, "type", label, "default"));
  HEARTH_ASSIGN(const std::string type,
                JsonText(p, "rope_type", label, old_type));
  if (type == "linear") {
    s.kind = RopeScalingKind::kLinear;
    HEARTH_ASSIGN(s.factor, Needed(p, "factor", label));
  } else if (type == "llama3") {
    HEARTH_TRY(ReadLlama3(p, s, label));
  } else if (type == "yarn") {
    HEARTH_TRY(ReadYarn(json, p, s, label));
  } else if (type == "longrope" || type == "su") {
    HEARTH_TRY(ReadLongrope(json, p, s, label));
  } else if (type == "proportional") {
    s.kind = RopeScalingKind::kProportional;
    HEARTH_ASSIGN(s.turning, JsonNumber(p, "partial_rotary_factor", label, 1));
    HEARTH_ASSIGN(const double factor, JsonNumber(p, "factor", label, 1));
    if (factor != 1) {
      return Unsupported(label, "proportional rope with a factor");
    }
  } else if (type != "default") {
    return Unsupported(label, "rope type " + Quoted(type) +
                                  " is not supported; supported are default, "
                                  "linear, llama3, yarn, longrope and "
                                  "proportional");
  }
  return BuildRope(rope, label);
}

Result<void> ReadHfRopeSettings(const Json& json, int head_dim,
                                bool partial_rotary, RopeConfig& rope,
                                const std::string& label) {
  HEARTH_ASSIGN(const double theta,
                JsonNumber(json, "rope_theta", label, 10000));
  HEARTH_ASSIGN(double part,
                JsonNumber(json, "partial_rotary_factor", label, 1));
  const Json* settings = JsonFind(json, "rope_parameters");
  if (settings == nullptr) settings = JsonFind(json, "rope_scaling");
  if (settings != nullptr && settings->is_object()) {
    HEARTH_ASSIGN(part,
                  JsonNumber(*settings, "partial_rotary_factor", label, part));
  }
  if (part != 1 && !partial_rotary) {
    return Unsupported(label,
                       "partial_rotary_factor other than 1 is not supported");
  }
  if (!(part > 0 && part <= 1)) {
    return {Code::kCorrupt, label + ": partial_rotary_factor is not in 0 to 1"};
  }
  rope.rotary_dim = static_cast<int>(head_dim * part);
  return ReadHfRope(json, settings, theta, rope, label);
}

}  // namespace hearth
