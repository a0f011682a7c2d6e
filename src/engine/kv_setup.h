// What the KV options mean for one model: the shape of the cache, what it
// keeps, and what is refused.
#pragma once

#include <vector>

#include "cache/kv_spec.h"
#include "hearth/engine.h"
#include "hearth/options.h"
#include "model/config.h"

namespace hearth {

KvFormat FormatOf(KvStorage storage);

KvSpec SpecOf(const ModelConfig& config, KvFormat keys, KvFormat values,
              int block_tokens);

// A KV layer keeps what any layer that reads it sees.
KvRetention RetentionOf(const ModelConfig& config);

// Puts sinks and a window in front of what the model's file says.
// kInvalidArgument, kUnsupported for learned positions.
Result<void> SetStreaming(const EngineOptions& options, ModelConfig& config);

// The concat reference is for the formats whose growth it shows.
Result<void> CheckConcat(const EngineOptions& options, const KvSpec& spec);

// What the KV cache of this model can do; `hearth inspect` prints it.
std::vector<Capability> CapabilitiesOf(const ModelConfig& config);

}  // namespace hearth
