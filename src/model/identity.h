// What a model is, by content: two files give the same id exactly when they
// compute the same keys and values.
#pragma once

#include "base/hash.h"
#include "base/thread_pool.h"
#include "kernels/numerics.h"
#include "model/weights.h"

namespace hearth {

// SHA-256 over every tensor's name, type, shape and an XXH3-128 of all its
// bytes (hashed in parallel). Reads the whole model once: about the time of
// one pass over memory. Callers memoise it by FileStamp.
Digest ContentDigest(const LoadedModel& model, ThreadPool& pool);

// The model id that block ids are chained from: content digest, every field of
// the configuration that affects the forward pass, and the numerics of the
// device. context_length and name are not part of it.
Digest ModelId(const ModelConfig& config, const Digest& content,
               const Numerics& numerics = {});

}  // namespace hearth
