// Penalties on tokens that came before (hearth/options.h has the definitions).
#pragma once

#include <cstdint>
#include <span>

#include "hearth/options.h"

namespace hearth {

bool HasPenalties(const SamplingOptions& options);

// Repeat, presence and frequency penalty for the newest of `before`. `logits`:
// [n_vocab]; ids beyond them are passed over.
void Penalise(const SamplingOptions& options,
              std::span<const std::int32_t> before, std::span<float> logits);

}  // namespace hearth
