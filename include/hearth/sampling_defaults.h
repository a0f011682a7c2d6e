// How a model's authors recommend to sample from it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace hearth {

// What generation_config.json or general.sampling.* of a GGUF file say; empty
// where they say nothing. Ranges are checked by the reader.
struct SamplingDefaults {
  std::optional<double> temperature = {};         // >= 0; 0: greedy
  std::optional<int> top_k = {};                  // >= 0; 0: off
  std::optional<double> top_p = {};               // 0..1; 1: off
  std::optional<double> min_p = {};               // 0..1; 0: off
  std::optional<double> repetition_penalty = {};  // > 0; 1: off
  std::optional<int> repetition_tokens = {};      // the newest that it looks at
  // Never sampled; ids of the model's vocabulary.
  std::vector<std::int32_t> suppressed_ids = {};

  bool operator==(const SamplingDefaults&) const = default;
};

}  // namespace hearth
