#include "model/io/families.h"

#include <algorithm>
#include <array>

#include "model/io/describe.h"

namespace hearth {
namespace {

Error Unsupported(const std::string& label, const std::string& what) {
  return {Code::kUnsupported, label + ": " + what};
}

// --- llama ------------------------------------------------------------------

// Biases are optional in this family. The first layer decides; a layer that
// disagrees has a missing tensor or one without use, and is refused as such.
Result<void> FinishLlamaGguf(const GgufFile&, const TensorSet& tensors,
                             ModelConfig&, WeightPlan& plan) {
  plan.qkv_bias = tensors.Has(BiasName(kGgufNames, Role::kQ));
  plan.o_bias = tensors.Has(BiasName(kGgufNames, Role::kO));
  plan.mlp_bias = tensors.Has(BiasName(kGgufNames, Role::kUp));
  return {};
}

Result<void> FinishLlamaHf(const Json& json, const std::string& label,
                           ModelConfig&, WeightPlan& plan) {
  HEARTH_ASSIGN(const bool attention,
                JsonBool(json, "attention_bias", label, false));
  HEARTH_ASSIGN(plan.mlp_bias, JsonBool(json, "mlp_bias", label, false));
  plan.qkv_bias = plan.o_bias = attention;
  return {};
}

// --- qwen2: llama with biases on q, k and v ---------------------------------

Result<void> FinishQwen2Gguf(const GgufFile&, const TensorSet&, ModelConfig&,
                             WeightPlan& plan) {
  plan.qkv_bias = true;
  return {};
}

Result<void> FinishQwen2Hf(const Json& json, const std::string& label,
                           ModelConfig&, WeightPlan& plan) {
  plan.qkv_bias = true;
  HEARTH_ASSIGN(const bool sliding,
                JsonBool(json, "use_sliding_window", label, false));
  if (sliding) {
    return Unsupported(label,
                       "use_sliding_window: sliding-window attention is "
                       "not supported");
  }
  const Json* types = JsonFind(json, "layer_types");
  if (types == nullptr) return {};
  if (!types->is_array()) {
    return {Code::kCorrupt, label + ": member \"layer_types\" is not an array"};
  }
  for (const Json& type : *types) {
    if (!type.is_string() ||
        type.get_ref<const std::string&>() != "full_attention") {
      return Unsupported(
          label,
          "layer_types: only \"full_attention\" is supported, not " +
              Quoted(type.is_string() ? type.get_ref<const std::string&>()
                                      : std::string("another kind")));
    }
  }
  return {};
}

constexpr std::array<Family, 2> kFamilies = {{
    {"llama", "LlamaForCausalLM", /*gguf_interleaved=*/true, FinishLlamaGguf,
     FinishLlamaHf},
    {"qwen2", "Qwen2ForCausalLM", /*gguf_interleaved=*/false, FinishQwen2Gguf,
     FinishQwen2Hf},
}};

}  // namespace

std::span<const Family> Families() { return kFamilies; }

const Family* FamilyOfGguf(std::string_view architecture) {
  const auto it = std::find_if(
      kFamilies.begin(), kFamilies.end(),
      [&](const Family& f) { return f.architecture == architecture; });
  return it == kFamilies.end() ? nullptr : &*it;
}

const Family* FamilyOfHfClass(std::string_view hf_class) {
  const auto it =
      std::find_if(kFamilies.begin(), kFamilies.end(),
                   [&](const Family& f) { return f.hf_class == hf_class; });
  return it == kFamilies.end() ? nullptr : &*it;
}

}  // namespace hearth
