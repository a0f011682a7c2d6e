// What a model is, by content: two files give the same id exactly when they
// compute the same keys and values.
#pragma once

#include <cstdint>
#include <functional>

#include "base/hash.h"
#include "base/thread_pool.h"
#include "kernels/numerics.h"
#include "model/weights.h"

namespace hearth {

// How many of a model's bytes were read so far. Called by one thread at a time.
using BytesRead = std::function<void(std::uint64_t done, std::uint64_t total)>;

// SHA-256 over every tensor's name, type, shape and an XXH3-128 of all its
// bytes (hashed in parallel). Reads the whole model once: about the time of
// one pass over memory. Callers memoise it by FileStamp. `on_read` may be null.
Digest ContentDigest(const LoadedModel& model, ThreadPool& pool,
                     const BytesRead& on_read = nullptr);

// What stands for `content` where a model has adapters: their content and
// scales, too. Without adapters `content` itself. The order in which adapters
// were given is not part of it, as it changes no bit.
Digest AdaptedContent(const Digest& content,
                      const std::vector<AppliedAdapter>& adapters);

// The model id that block ids are chained from: content digest, every field of
// the configuration that affects the forward pass, and the numerics of the
// device. context_length and name are not part of it.
Digest ModelId(const ModelConfig& config, const Digest& content,
               const Numerics& numerics = {});

}  // namespace hearth
