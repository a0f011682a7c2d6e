#include "engine/kv_setup.h"

#include <algorithm>
#include <string>

namespace hearth {
namespace {

std::string Layers(int n) {
  return std::to_string(n) + (n == 1 ? " layer" : " layers");
}

// Layers with keys of their own among the first.
int OwnersUpTo(const ModelConfig& config, int layer) {
  int n = 0;
  for (int i = 0; i < layer; ++i) n += config.OwnsKv(i) ? 1 : 0;
  return n;
}

std::string WindowNote(const ModelConfig& config) {
  int n_windowed = 0;
  int window = 0;
  for (int i = 0; i < config.n_layers; ++i) {
    if (config.KindOf(i).window == 0) continue;
    ++n_windowed;
    window = std::max(window, config.KindOf(i).window);
  }
  if (n_windowed == 0) return "none: every layer sees all tokens";
  return Layers(n_windowed) + " of " + std::to_string(config.n_layers) +
         " see " + std::to_string(window) +
         " tokens; what they are done with is given back";
}

std::string StateNote(const ModelConfig& config) {
  int n_layers = 0;
  std::int64_t n_floats = 0;
  for (int i = 0; i < config.n_layers; ++i) {
    const auto states = config.StatesOf(i);
    n_layers += states.empty() ? 0 : 1;
    for (const StateShape& state : states) n_floats += state.n_floats();
  }
  return Layers(n_layers) + " of " + std::to_string(config.n_layers) +
         " carry one, " + std::to_string(n_floats * 4 >> 10) +
         " KiB for each sequence";
}

}  // namespace

KvFormat FormatOf(KvStorage storage) {
  switch (storage) {
    case KvStorage::kFp16:
      return KvFormat::kF16;
    case KvStorage::kBf16:
      return KvFormat::kBF16;
    case KvStorage::kInt8:
      return KvFormat::kInt8;
    case KvStorage::kInt4:
      return KvFormat::kInt4;
    case KvStorage::kFp32:
      break;
  }
  return KvFormat::kF32;
}

KvSpec SpecOf(const ModelConfig& config, KvFormat keys, KvFormat values,
              int block_tokens) {
  KvSpec spec;
  spec.block_tokens = block_tokens;
  for (int i = 0; i < config.n_layers; ++i) {
    for (StateShape& state : config.StatesOf(i)) {
      spec.states.push_back(std::move(state));
    }
    if (!config.OwnsKv(i)) continue;
    spec.layers.push_back({.n_heads = config.KvHeads(i),
                           .key_dim = config.HeadDim(i),
                           .value_dim = config.ValueDim(i),
                           .key_format = keys,
                           .value_format = values});
  }
  return spec;
}

KvRetention RetentionOf(const ModelConfig& config) {
  KvRetention retention;
  retention.sink_tokens = config.sink_tokens;
  retention.windows.assign(static_cast<std::size_t>(config.n_kv_layers()), -1);
  for (int i = 0; i < config.n_layers; ++i) {
    if (!Attends(config.KindOf(i).mixer)) continue;
    int& window =
        retention.windows[static_cast<std::size_t>(config.KvLayerOf(i))];
    const int source = config.KvLayerOf(i);
    if (!config.OwnsKv(i) && source != OwnersUpTo(config, i) - 1) {
      retention.read_later.resize(retention.windows.size());
      retention.read_later[static_cast<std::size_t>(source)] = true;
    }
    const int seen = config.SightOf(i).window;
    window = window == 0 || seen == 0 ? 0 : std::max(window, seen);
  }
  return retention;
}

Result<void> SetStreaming(const EngineOptions& options, ModelConfig& config) {
  const int sink = options.streaming_sink;
  const int window = options.streaming_window;
  if (window == 0 && sink == 0) return {};
  if (window < 1 || sink < 0) {
    return {Code::kInvalidArgument,
            "sinks and a streaming window go together: at least 0 sink tokens "
            "and 1 window token"};
  }
  if (config.learned_positions) {
    return {Code::kUnsupported,
            "a streaming window: " + config.name +
                " has learned positions, which are part of what a token's key "
                "is made of and cannot be moved when older tokens go; a model "
                "with rotary positions can stream"};
  }
  if (std::int64_t{sink} + window > config.context_length) {
    return {Code::kInvalidArgument,
            "sinks and streaming window are " +
                std::to_string(std::int64_t{sink} + window) +
                " tokens and the model was trained on " +
                std::to_string(config.context_length)};
  }
  config.sink_tokens = sink;
  config.stream_window = window;
  return {};
}

Result<void> CheckConcat(const EngineOptions& options, const KvSpec& spec) {
  if (options.kv_growth != KvGrowth::kConcat) return {};
  if (spec.quantised()) {
    return {Code::kInvalidArgument,
            "the concat reference keeps fp32, fp16 and bf16 only: a quantised "
            "cache is made of sealed blocks; let it grow in place"};
  }
  return {};
}

std::vector<Capability> CapabilitiesOf(const ModelConfig& config) {
  std::vector<Capability> out;
  for (int i = 0; i < kKvFormats; ++i) {
    const auto format = static_cast<KvFormat>(i);
    out.push_back({"kv " + std::string(NameOf(format)), true,
                   IsQuantised(format)
                       ? "full blocks; the newest tokens stay in fp32"
                       : "in place or concat"});
  }
  out.push_back({"native window", true, WindowNote(config)});
  ModelConfig streamed = config;
  EngineOptions options;
  options.streaming_sink = std::min(4, config.context_length - 1);
  options.streaming_window = config.context_length - options.streaming_sink;
  const auto streams = SetStreaming(options, streamed);
  out.push_back({"sinks + window", streams.ok(),
                 streams.ok()
                     ? "N sink tokens and a window of W, N + W up to " +
                           std::to_string(config.context_length)
                     : streams.error().message});
  if (config.HasStates()) {
    out.push_back({"recurrent state", true, StateNote(config)});
  }
  out.push_back({"shared KV", true,
                 config.kv_anchor < 0
                     ? "none: every layer with attention owns its keys and "
                       "values"
                     : Layers(config.n_layers - config.n_kv_layers()) +
                           " attend to layer " +
                           std::to_string(config.kv_anchor) + " (YOCO)"});
  if (config.attention_sinks) {
    out.push_back({"learned sinks", true, "one score per head"});
  }
  if (config.HasStates()) {
    out.push_back({"fork, rewind, persist", true,
                   "to where the state was kept: message ends, the prompt's "
                   "end, now and then between; the rest is computed again"});
  } else {
    out.push_back({"fork, rewind, persist", true,
                   "what a window or a quantised block no longer has is "
                   "computed again"});
  }
  out.push_back({"speculation", true,
                 "prompt lookup, a draft model of the same vocabulary"});
  return out;
}

}  // namespace hearth
