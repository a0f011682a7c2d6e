// Phi 3 and 4-mini: q, k, v in one matrix, gate and up in another; longrope; a
// part of each head may stay unrotated.
#include "formats/families/all.h"
#include "formats/families/settings.h"

namespace hearth {
namespace {

constexpr std::string_view kGgufKeys[] = {"attention.sliding_window"};

void Describe(ModelConfig&, WeightPlan& plan) {
  plan.fused_qkv = plan.fused_gate_up = true;
}

Result<void> FinishGguf(const GgufInput& in) {
  // Some converters take the first matrix apart.
  in.plan.fused_qkv = in.tensors.Has(WeightName(kGgufNames, Role::kQkv));
  return GgufWindows(in, 0, 0);
}

Result<void> FinishHf(const HfInput& in) {
  HEARTH_TRY(HfRequire(in, "attention_bias", false));
  HEARTH_ASSIGN(const int window, HfSize(in, "sliding_window", 0));
  return HfWindows(in, window, [](int) { return true; });
}

}  // namespace

constinit const Family kPhi3Family = {
    .architecture = "phi3",
    .gguf_architecture = "phi3",
    .hf_class = "Phi3ForCausalLM",
    .hf_model_type = "phi3",
    .hf_partial_rotary = true,
    .gguf_keys = kGgufKeys,
    .describe = Describe,
    .finish_gguf = FinishGguf,
    .finish_hf = FinishHf,
};

}  // namespace hearth
