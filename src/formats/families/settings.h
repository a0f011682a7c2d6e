// Settings that several families have in common.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "formats/families.h"

namespace hearth {

// kUnsupported: "label: what".
Error UnsupportedSetting(const std::string& label, const std::string& what);

// A size (0 .. 2^31 - 1) from config.json. kCorrupt when it is missing, unless
// there is a fallback.
Result<int> HfSize(const HfInput& in, const char* key);
Result<int> HfSize(const HfInput& in, const char* key, int fallback);
// The same from GGUF, where `key` has no prefix.
Result<int> GgufSize(const GgufInput& in, const char* key, int fallback);

// One of each layer: the numbers of a list, or one number for all. kCorrupt
// when the list has another length or an impossible number.
Result<std::vector<int>> GgufPerLayer(const GgufInput& in, const char* key,
                                      int fallback);

// A positive number, e.g. a multiplier; kCorrupt otherwise. Missing: fallback.
Result<float> HfScale(const HfInput& in, const char* key, double fallback);
Result<float> GgufScale(const GgufInput& in, const char* key, double fallback);
// The shortest decimal that reads back as `value`, for a config.json.
double HfNumber(float value);
// A soft cap: null or 0 means none. Missing: fallback.
Result<float> HfSoftcap(const HfInput& in, const char* key, double fallback);

// Refuses anything but `only` (a missing member is fine).
Result<void> HfRequire(const HfInput& in, const char* key, bool only);

// attention_bias: of q, k, v and o. mlp_bias: of gate, up and down.
Result<void> HfAttentionBias(const HfInput& in);
Result<void> HfMlpBias(const HfInput& in);
// GGUF has no key: the first layer decides. A layer that disagrees has a
// missing tensor or one without use, and is refused as such.
void GgufBiases(const GgufInput& in);

// Makes layer_kinds and calls set(kind, i) for every layer.
template <class Set>
void SetLayerKinds(ModelConfig& config, Set set) {
  // A false layer count is refused later, by CheckConfig.
  const int n = config.n_layers < 1 << 14 ? config.n_layers : 0;
  config.layer_kinds.resize(static_cast<std::size_t>(n));
  for (int i = 0; i < n; ++i) {
    set(config.layer_kinds[static_cast<std::size_t>(i)], i);
  }
}

// Windows of `window` tokens in the layers that "layer_types" calls
// sliding_attention; without that list where by_default(i) is true. Layer kinds
// must be as their default or made before.
Result<void> HfWindows(const HfInput& in, int window,
                       const std::function<bool(int layer)>& by_default);
// qwen's way: use_sliding_window, sliding_window, max_window_layers.
Result<void> HfOptionalWindows(const HfInput& in);
// kUnsupported when some layers have no experts (decoder_sparse_step,
// mlp_only_layers): layers that differ in more than their weights have no code.
Result<void> HfOnlyExperts(const HfInput& in);

// Main and local rotation of all of a head: from the members of
// rope_parameters that are called full_attention and sliding_attention, or else
// from the model's own, of which the local one keeps the base alone. Bases when
// the file has none; local_base 0: the main one's.
Result<void> HfRopesByKind(const HfInput& in, double base,
                           double local_base = 0);
// The local rotation of GGUF, which has no scaling: the main one's pairs.
Result<void> GgufLocalRope(const GgufInput& in, int rotary_dim, double base);
// Layers with a window turn by the local frequencies.
void UseLocalRopeInWindows(ModelConfig& config);

// attention.sliding_window in all layers but every `period`-th (0: in all);
// attention.sliding_window_pattern, a number or a list of booleans, wins.
// `fallback`: the window when the key is missing.
Result<void> GgufWindows(const GgufInput& in, int period, int fallback);

// Drops the blocks behind the last layer, which guess tokens ahead
// (nextn_predict_layers).
Result<void> GgufDropGuessers(const GgufInput& in);

// How a router's choice is weighed: RouterRules but for its bias. `normalize`:
// what a missing key means.
Result<void> GgufRouterRules(const GgufInput& in, bool normalize);
void WriteGgufRouterRules(const ModelConfig& config, const GgufKeyWriter& key);
Result<void> HfRouterRules(const HfInput& in);
void WriteHfRouterRules(const ModelConfig& config, Json& json);

// expert_count and its kin.
Result<void> GgufExperts(const GgufInput& in);

}  // namespace hearth
