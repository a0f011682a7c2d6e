// Ministral 3: mistral with yarn, whose queries grow beyond the original
// context.
#include "formats/families/all.h"
#include "formats/families/settings.h"

namespace hearth {
namespace {

constexpr std::string_view kGgufKeys[] = {"rope.scaling.yarn_log_multiplier"};

Result<void> SetGrowth(ModelConfig& config, double beta,
                       const std::string& label) {
  if (beta == 0) return {};
  if (!(beta > 0 && beta < 1e3) ||
      !(config.rope.scaling.original_context >= 1 &&
        config.rope.scaling.original_context <= 1e9)) {
    return {Code::kCorrupt,
            label +
                ": queries that grow need a positive number and an "
                "original context"};
  }
  config.query_growth = {
      static_cast<float>(beta),
      static_cast<int>(config.rope.scaling.original_context)};
  return {};
}

Result<void> FinishGguf(const GgufInput& in) {
  HEARTH_ASSIGN(const double beta,
                in.file.Float(in.Key("attention.temperature_scale"), 0));
  return SetGrowth(in.config, beta, in.file.label());
}

Result<void> FinishHf(const HfInput& in) {
  HEARTH_TRY(HfRequire(in, "attention_bias", false));
  const Json* rope = JsonFind(in.json, "rope_parameters");
  if (rope != nullptr && rope->is_object()) {
    HEARTH_ASSIGN(const double beta,
                  JsonNumber(*rope, "llama_4_scaling_beta", in.label, 0));
    HEARTH_TRY(SetGrowth(in.config, beta, in.label));
  }
  HEARTH_ASSIGN(const int window, HfSize(in, "sliding_window", 0));
  return HfWindows(in, window, [](int) { return true; });
}

void WriteHf(const ModelConfig& config, Json& json) {
  json["rope_parameters"]["llama_4_scaling_beta"] =
      HfNumber(config.query_growth.beta);
}

void WriteGguf(const ModelConfig& config, const GgufKeyWriter& key) {
  if (config.query_growth.beta == 0) return;
  key.number("attention.temperature_scale",
             static_cast<double>(config.query_growth.beta));
}

}  // namespace

constinit const Family kMinistral3Family = {
    .architecture = "mistral3",
    .gguf_architecture = "mistral3",
    .hf_class = "Ministral3ForCausalLM",
    .hf_model_type = "ministral3",
    .gguf_interleaved = true,
    .gguf_keys = kGgufKeys,
    .finish_gguf = FinishGguf,
    .finish_hf = FinishHf,
    .write_hf = WriteHf,
    .write_gguf = WriteGguf,
};

}  // namespace hearth
