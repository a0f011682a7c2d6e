#include "engine/sampling/penalties.h"

#include <unordered_map>

#include "engine/sampling/logit.h"
#include "engine/sampling/window.h"

namespace hearth {

bool HasPenalties(const SamplingOptions& options) {
  return options.repeat_last_n != 0 &&
         (options.repeat_penalty != 1 || options.presence_penalty != 0 ||
          options.frequency_penalty != 0);
}

void Penalise(const SamplingOptions& options,
              std::span<const std::int32_t> before, std::span<float> logits) {
  std::unordered_map<std::int32_t, int> counts;
  for (const std::int32_t id : Newest(before, options.repeat_last_n)) {
    ++counts[id];
  }
  for (const auto& [id, count] : counts) {
    const auto at = static_cast<std::size_t>(id);
    if (at >= logits.size()) continue;
    double logit = logits[at];
    // A division alone would make an unlikely token likelier.
    logit = logit <= 0 ? logit * options.repeat_penalty
                       : logit / options.repeat_penalty;
    logit -= count * options.frequency_penalty + options.presence_penalty;
    logits[at] = ToLogit(logit);
  }
}

}  // namespace hearth
