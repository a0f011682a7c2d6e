#include <algorithm>
#include <cmath>

#include "formats/describe.h"
#include "formats/huggingface/hf_rope.h"
#include "formats/huggingface/huggingface.h"
#include "formats/huggingface/huggingface_kind.h"
#include "formats/narrow.h"

namespace hearth {
namespace {

Error Unsupported(const std::string& label, const std::string& what) {
  return {Code::kUnsupported, label + ": " + what};
}

Result<int> Size(const Json& json, const char* key, const std::string& label) {
  return NarrowToSize(JsonInt(json, key, label), label,
                      "member " + Quoted(key));
}

Result<int> Size(const Json& json, const char* key, const std::string& label,
                 int fallback) {
  return NarrowToSize(JsonInt(json, key, label, fallback), label,
                      "member " + Quoted(key));
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
    for (const Family* f : Families()) {
      known += (known.empty() ? "" : ", ") + std::string(f->hf_class);
    }
    const std::string note = OtherHfClassNote(json, name);
    return Unsupported(label, "architecture " + Quoted(name) +
                                  " is not supported" +
                                  (note.empty() ? "" : ": " + note) +
                                  "; supported are " + known);
  }
  return family;
}

Result<void> ReadShapes(const Json& json, const std::string& label,
                        const Family& family, ModelConfig& c) {
  const HfKeys& keys = family.hf_keys;
  const Json* layers = JsonFind(json, keys.layer_list);
  if (JsonFind(json, keys.n_layers) == nullptr && layers != nullptr &&
      layers->is_array() && layers->size() <= 1 << 14) {
    c.n_layers = static_cast<int>(layers->size());
  } else {
    HEARTH_ASSIGN(c.n_layers, Size(json, keys.n_layers, label));
  }
  HEARTH_ASSIGN(c.d_model, Size(json, keys.d_model, label));
  HEARTH_ASSIGN(c.n_heads, Size(json, keys.n_heads, label));
  HEARTH_ASSIGN(c.n_kv_heads,
                Size(json, "num_key_value_heads", label, c.n_heads));
  // GPT-2 leaves it out when it is four times the width.
  HEARTH_ASSIGN(c.d_mlp,
                IsGated(c.mlp)
                    ? Size(json, keys.d_mlp, label)
                    : Size(json, keys.d_mlp, label,
                           c.d_model < INT32_MAX / 4 ? 4 * c.d_model : 0));
  HEARTH_ASSIGN(c.vocab_size, Size(json, "vocab_size", label));
  HEARTH_ASSIGN(c.context_length, Size(json, keys.context, label));
  int head_dim = family.hf_head_dim;
  if (head_dim == 0) {
    if (JsonFind(json, "head_dim") == nullptr && c.n_heads > 0 &&
        c.d_model % c.n_heads != 0) {
      return {Code::kCorrupt, label + ": " + keys.d_model +
                                  " is no multiple of " + keys.n_heads +
                                  " and head_dim is missing"};
    }
    head_dim = c.n_heads > 0 ? c.d_model / c.n_heads : 0;
  }
  HEARTH_ASSIGN(c.head_dim, Size(json, "head_dim", label, head_dim));
  c.attention_scale =
      static_cast<float>(1.0 / std::sqrt(std::max(1, c.head_dim)));
  HEARTH_ASSIGN(const double eps, JsonNumber(json, keys.norm_eps, label,
                                             IsGated(c.mlp) ? 1e-6 : 1e-5));
  c.norm_eps = NarrowToFloat(eps);
  HEARTH_ASSIGN(c.tied_head,
                JsonBool(json, "tie_word_embeddings", label, family.hf_tied));
  return {};
}

Result<void> RefuseOtherArithmetic(const Json& json, const std::string& label,
                                   const Family& family) {
  // Families without a gate read theirs themselves.
  if (IsGated(family.mlp)) {
    const std::string wanted =
        family.mlp == MlpKind::kGatedGeluTanh ? "gelu_pytorch_tanh" : "silu";
    const char* key = family.hf_keys.activation;
    HEARTH_ASSIGN(const std::string act, JsonText(json, key, label, wanted));
    if (act != wanted) {
      return Unsupported(label, std::string(key) + " " + Quoted(act) +
                                    " is not supported, only " + wanted);
    }
  }
  return {};
}

// The text part of a model that sees images or hears besides, as the
// configuration of a model of its own; null when it is none that is known.
Json TextPart(const Json& json) {
  const Json* text = JsonFind(json, "text_config");
  if (text == nullptr || !text->is_object()) return {};
  const Json type = text->value("model_type", Json());
  const Family* family =
      type.is_string() ? FamilyOfHfModelType(type.get_ref<const std::string&>())
                       : nullptr;
  if (family == nullptr) return {};
  Json part = *text;
  part["architectures"] = {family->hf_class};
  // Some say it for the whole.
  for (const char* key : {"tie_word_embeddings", "quantization_config"}) {
    if (!part.contains(key) && json.contains(key)) part[key] = json.at(key);
  }
  return part;
}

}  // namespace

Result<HuggingFaceConfig> ReadHuggingFaceConfig(const Json& whole,
                                                const std::string& label) {
  if (!whole.is_object()) {
    return {Code::kCorrupt, label + ": not a JSON object"};
  }
  HuggingFaceConfig out;
  const Json part = TextPart(whole);
  out.text_part = !part.is_null();
  const Json& json = out.text_part ? part : whole;
  HEARTH_ASSIGN(out.family, FindFamily(json, label));
  ModelConfig& config = out.config;
  config.architecture = std::string(out.family->architecture);
  config.mlp = out.family->mlp;
  HEARTH_TRY(RefuseOtherArithmetic(json, label, *out.family));
  HEARTH_ASSIGN(out.quantization, ReadHfQuantization(json, label, *out.family));
  HEARTH_TRY(ReadShapes(json, label, *out.family, config));
  if (out.family->describe != nullptr) {
    out.family->describe(config, out.plan);
  }
  config.rope.interleaved = out.family->hf_interleaved;
  if (!config.learned_positions && !out.family->hf_rope_per_layer) {
    HEARTH_TRY(ReadHfRopeSettings(json, config.head_dim,
                                  out.family->hf_partial_rotary, config.rope,
                                  label));
  }
  if (out.family->finish_hf != nullptr) {
    HEARTH_TRY(out.family->finish_hf({json, label, config, out.plan}));
  }
  HEARTH_TRY(CheckConfig(config, label));
  config.name = NameFromShape(config);
  return out;
}

}  // namespace hearth
