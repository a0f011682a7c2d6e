#pragma once

#include "hearth/options.h"
#include "hearth/result.h"

namespace hearth {

// kInvalidArgument for a negative temperature, top_p outside [0, 1], ..., and
// for ids outside the model's vocabulary.
Result<void> CheckSampling(const SamplingOptions& options, int vocab_size);

}  // namespace hearth
