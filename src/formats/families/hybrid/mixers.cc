#include "formats/families/hybrid/mixers.h"

#include "formats/describe.h"
#include "formats/families/settings.h"

namespace hearth {

Result<void> HfMixers(const HfInput& in,
                      std::initializer_list<std::string_view> names,
                      Mixer mixer,
                      const std::function<bool(int layer)>& by_default) {
  SetLayerKinds(in.config, [&](LayerKind& kind, int i) {
    kind.mixer = by_default(i) ? mixer : Mixer::kAttention;
  });
  const Json* types = JsonFind(in.json, "layer_types");
  if (types == nullptr) return {};
  auto& kinds = in.config.layer_kinds;
  if (!types->is_array() || types->size() != kinds.size()) {
    return {Code::kCorrupt,
            in.label +
                ": member \"layer_types\" is not a list of one type "
                "for each layer"};
  }
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const Json& type = (*types)[i];
    const std::string text =
        type.is_string() ? type.get<std::string>() : "another kind";
    const bool mixes =
        std::find(names.begin(), names.end(), text) != names.end();
    // The second is what transformers before version 5 says.
    if (!mixes && text != "full_attention" && text != "attention") {
      return UnsupportedSetting(in.label,
                                "layer_types: supported are \"full_attention\" "
                                "and " +
                                    Quoted(*names.begin()) + ", not " +
                                    Quoted(text));
    }
    kinds[i].mixer = mixes ? mixer : Mixer::kAttention;
  }
  return {};
}

void WriteHfMixers(const ModelConfig& config, const char* name, Json& json) {
  Json types = Json::array();
  for (int i = 0; i < config.n_layers; ++i) {
    types.push_back(Attends(config.KindOf(i).mixer) ? "full_attention" : name);
  }
  json["layer_types"] = std::move(types);
}

Result<void> GgufMixers(const GgufInput& in, Mixer mixer) {
  HEARTH_ASSIGN(const std::vector<int> heads,
                GgufPerLayer(in, "attention.head_count_kv", 0));
  if (in.config.layer_kinds.empty())
    SetLayerKinds(in.config, [](auto&, int) {});
  auto& kinds = in.config.layer_kinds;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    if (heads[i] == 0) kinds[i].mixer = mixer;
    if (heads[i] != 0 && heads[i] != in.config.n_kv_heads) {
      kinds[i].n_kv_heads = heads[i];
    }
  }
  return {};
}

void WriteGgufMixers(const ModelConfig& config, const GgufKeyWriter& key) {
  std::vector<std::int32_t> heads;
  for (int i = 0; i < config.n_layers; ++i) {
    heads.push_back(Attends(config.KindOf(i).mixer) ? config.KvHeads(i) : 0);
  }
  key.sizes("attention.head_count_kv", std::move(heads));
}

}  // namespace hearth
