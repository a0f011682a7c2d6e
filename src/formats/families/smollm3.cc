// SmolLM 3: llama whose every fourth layer has no rotation.
#include "formats/families/all.h"
#include "formats/families/settings.h"

namespace hearth {
namespace {

constexpr int kInterval = 4;

void SetInterval(ModelConfig& config, int interval) {
  SetLayerKinds(config, [interval](LayerKind& kind, int i) {
    if ((i + 1) % interval == 0) kind.rope = RopeUse::kNone;
  });
}

Result<void> FinishGguf(const GgufInput& in) {
  SetInterval(in.config, kInterval);
  return {};
}

Result<void> FinishHf(const HfInput& in) {
  HEARTH_TRY(HfAttentionBias(in));
  HEARTH_TRY(HfMlpBias(in));
  HEARTH_ASSIGN(const int interval,
                HfSize(in, "no_rope_layer_interval", kInterval));
  if (interval < 1) {
    return {Code::kCorrupt, in.label + ": no_rope_layer_interval is 0"};
  }
  SetInterval(in.config, interval);
  // A list of 1 (rotated) and 0, whatever its name says.
  const Json* list = JsonFind(in.json, "no_rope_layers");
  auto& kinds = in.config.layer_kinds;
  if (list != nullptr) {
    if (!list->is_array() || list->size() != kinds.size()) {
      return {Code::kCorrupt, in.label +
                                  ": no_rope_layers is not one number "
                                  "for each layer"};
    }
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      const bool rotated = (*list)[i] != 0 && (*list)[i] != false;
      kinds[i].rope = rotated ? RopeUse::kMain : RopeUse::kNone;
    }
  }
  HEARTH_ASSIGN(const bool windows,
                JsonBool(in.json, "use_sliding_window", in.label, false));
  int window = 0;
  if (windows) {
    HEARTH_ASSIGN(window, HfSize(in, "sliding_window", 0));
  }
  return HfWindows(in, window, [&kinds](int layer) {
    return kinds[static_cast<std::size_t>(layer)].rope == RopeUse::kNone;
  });
}

void WriteHf(const ModelConfig& config, Json& json) {
  Json rotated = Json::array();
  for (int i = 0; i < config.n_layers; ++i) {
    rotated.push_back(config.KindOf(i).rope == RopeUse::kNone ? 0 : 1);
  }
  json["no_rope_layers"] = std::move(rotated);
}

}  // namespace

constinit const Family kSmolLm3Family = {
    .architecture = "smollm3",
    .gguf_architecture = "smollm3",
    .hf_class = "SmolLM3ForCausalLM",
    .hf_model_type = "smollm3",
    .gguf_interleaved = true,
    .hf_tied = true,
    .gguf_no_rope_interval = kInterval,
    .finish_gguf = FinishGguf,
    .finish_hf = FinishHf,
    .write_hf = WriteHf,
};

}  // namespace hearth
