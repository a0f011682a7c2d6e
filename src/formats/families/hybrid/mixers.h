// Which layers of a hybrid model attend, in each file format.
#pragma once

#include <functional>
#include <initializer_list>
#include <string_view>

#include "formats/families.h"

namespace hearth {

// Layers that "layer_types" calls by one of `names` get `mixer`, those that it
// calls full_attention attend; without that list `mixer` where by_default(i) is
// true.
Result<void> HfMixers(const HfInput& in,
                      std::initializer_list<std::string_view> names,
                      Mixer mixer,
                      const std::function<bool(int layer)>& by_default);
// The list, for a config.json.
void WriteHfMixers(const ModelConfig& config, const char* name, Json& json);

// Layers whose entry in the list attention.head_count_kv is 0 get `mixer`.
Result<void> GgufMixers(const GgufInput& in, Mixer mixer);
// That list.
void WriteGgufMixers(const ModelConfig& config, const GgufKeyWriter& key);

}  // namespace hearth
