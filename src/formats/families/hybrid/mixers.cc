#include "formats/families/hybrid/mixers.h"

#include "formats/describe.h"
#include "formats/families/settings.h"

namespace hearth {

Result<void> HfMixers(const HfInput& in, const std::string& name, Mixer mixer,
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
    if (text != name && text != "full_attention") {
      return UnsupportedSetting(in.label,
                                "layer_types: supported are \"full_attention\" "
                                "and " +
                                    Quoted(name) + ", not " + Quoted(text));
    }
    kinds[i].mixer = text == name ? mixer : Mixer::kAttention;
  }
  return {};
}

void WriteHfMixers(const ModelConfig& config, const char* name, Json& json) {
  Json types = Json::array();
  for (int i = 0; i < config.n_layers; ++i) {
    types.push_back(
        config.KindOf(i).mixer == Mixer::kAttention ? "full_attention" : name);
  }
  json["layer_types"] = std::move(types);
}

Result<void> GgufMixers(const GgufInput& in, Mixer mixer) {
  const std::string key = in.Key("attention.head_count_kv");
  HEARTH_ASSIGN(const std::vector<std::int32_t> heads, in.file.IntArray(key));
  SetLayerKinds(in.config, [](LayerKind&, int) {});
  auto& kinds = in.config.layer_kinds;
  if (heads.size() != kinds.size()) {
    return {Code::kCorrupt, in.file.label() + ": key " + Quoted(key) +
                                " is not one number for each layer"};
  }
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    if (heads[i] == 0) kinds[i].mixer = mixer;
  }
  return {};
}

void WriteGgufMixers(const ModelConfig& config, const GgufKeyWriter& key) {
  std::vector<std::int32_t> heads;
  for (int i = 0; i < config.n_layers; ++i) {
    heads.push_back(
        config.KindOf(i).mixer == Mixer::kAttention ? config.KvHeads(i) : 0);
  }
  key.sizes("attention.head_count_kv", std::move(heads));
}

}  // namespace hearth
