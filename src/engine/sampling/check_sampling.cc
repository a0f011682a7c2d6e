#include "engine/sampling/check_sampling.h"

#include <cmath>
#include <limits>
#include <string>

namespace hearth {
namespace {

Error Refused(const std::string& message) {
  return {Code::kInvalidArgument, message};
}

Result<void> CheckFilters(const SamplingOptions& options) {
  if (!(options.temperature >= 0) || !std::isfinite(options.temperature)) {
    return Refused("temperature must be 0 or more");
  }
  if (options.top_k < 0) return Refused("top-k must be 0 (off) or more");
  if (!(options.top_p >= 0 && options.top_p <= 1)) {
    return Refused("top-p must be 0 to 1 (off)");
  }
  if (!(options.min_p >= 0 && options.min_p <= 1)) {
    return Refused("min-p must be 0 (off) to 1");
  }
  if (!(options.xtc_probability >= 0 && options.xtc_probability <= 1)) {
    return Refused("the XTC probability must be 0 (off) to 1");
  }
  if (!(options.xtc_threshold >= 0 && options.xtc_threshold <= 1)) {
    return Refused("the XTC threshold must be 0 to 1 (above 0.5: off)");
  }
  return {};
}

Result<void> CheckPenalties(const SamplingOptions& options) {
  if (!(options.repeat_penalty > 0) || !std::isfinite(options.repeat_penalty)) {
    return Refused("the repeat penalty must be above 0 (1: off)");
  }
  if (options.repeat_last_n < -1) {
    return Refused("the penalties' window must be 0 (off) or more, or -1: all");
  }
  if (!std::isfinite(options.presence_penalty) ||
      !std::isfinite(options.frequency_penalty)) {
    return Refused("presence and frequency penalty must be numbers");
  }
  if (!(options.dry_multiplier >= 0) ||
      !std::isfinite(options.dry_multiplier)) {
    return Refused("the DRY multiplier must be 0 (off) or more");
  }
  if (!(options.dry_base >= 1) || !std::isfinite(options.dry_base)) {
    return Refused("the DRY base must be 1 or more");
  }
  if (options.dry_allowed_length < 1) {
    return Refused("the DRY allowed length must be 1 or more");
  }
  if (options.dry_penalty_last_n < -1) {
    return Refused("DRY's window must be 0 (off) or more, or -1: all");
  }
  for (const std::string& breaker : options.dry_sequence_breakers) {
    if (breaker.empty()) {
      return Refused("an empty DRY sequence breaker would break everywhere");
    }
  }
  return {};
}

Result<void> CheckId(std::int32_t id, int vocab_size, const char* what) {
  if (id >= 0 && id < vocab_size) return {};
  return Refused(std::string(what) + ": token id " + std::to_string(id) +
                 " is outside the model's vocabulary of " +
                 std::to_string(vocab_size));
}

}  // namespace

Result<void> CheckSampling(const SamplingOptions& options, int vocab_size) {
  HEARTH_TRY(CheckFilters(options));
  HEARTH_TRY(CheckPenalties(options));
  for (const auto& [id, bias] : options.logit_bias) {
    HEARTH_TRY(CheckId(id, vocab_size, "logit bias"));
    if (!std::isfinite(bias) &&
        bias != -std::numeric_limits<double>::infinity()) {
      return Refused("logit bias: of token id " + std::to_string(id) +
                     " must be a number, or minus infinity");
    }
  }
  for (const std::int32_t id : options.suppressed_ids) {
    HEARTH_TRY(CheckId(id, vocab_size, "suppressed ids"));
  }
  return {};
}

}  // namespace hearth
