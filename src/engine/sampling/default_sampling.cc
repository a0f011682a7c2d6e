#include "hearth/options.h"

namespace hearth {

SamplingOptions DefaultSampling(const SamplingDefaults& model) {
  SamplingOptions out;
  out.temperature = model.temperature.value_or(0.8);
  out.top_k = model.top_k.value_or(40);
  out.top_p = model.top_p.value_or(0.95);
  out.min_p = model.min_p.value_or(0.05);
  out.repeat_penalty = model.repetition_penalty.value_or(1);
  if (model.repetition_penalty.has_value()) out.repeat_last_n = -1;
  out.repeat_last_n = model.repetition_tokens.value_or(out.repeat_last_n);
  out.suppressed_ids = model.suppressed_ids;
  return out;
}

}  // namespace hearth
