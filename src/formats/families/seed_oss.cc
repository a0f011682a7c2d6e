// Seed-OSS: llama with biases on q, k and v.
#include "formats/families/all.h"
#include "formats/families/settings.h"

namespace hearth {
namespace {

constexpr NameScheme kSeedGgufNames =
    WithNames(kGgufNames, {{Role::kMlpNorm, "blk.{}.post_attention_norm"}});

Result<void> FinishGguf(const GgufInput& in) {
  GgufBiases(in);
  return {};
}

Result<void> FinishHf(const HfInput& in) {
  HEARTH_ASSIGN(in.plan.qkv_bias,
                JsonBool(in.json, "attention_bias", in.label, true));
  HEARTH_ASSIGN(in.plan.o_bias,
                JsonBool(in.json, "attention_out_bias", in.label, false));
  return HfMlpBias(in);
}

}  // namespace

constinit const Family kSeedOssFamily = {
    .architecture = "seed_oss",
    .gguf_architecture = "seed_oss",
    .hf_class = "SeedOssForCausalLM",
    .hf_model_type = "seed_oss",
    .gguf_names = kSeedGgufNames,
    .hf_head_dim = 128,
    .hf_bias_not_of_o = true,
    .finish_gguf = FinishGguf,
    .finish_hf = FinishHf,
};

}  // namespace hearth
