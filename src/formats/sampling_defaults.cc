#include "formats/sampling_defaults.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include "formats/describe.h"
#include "formats/gguf/gguf.h"

namespace hearth {
namespace {

constexpr double kAnySize = std::numeric_limits<double>::max();

struct Range {
  double least, most;
  bool least_included = true;
};
constexpr Range kTemperatures{0, kAnySize};
constexpr Range kProbabilities{0, 1};
constexpr Range kPenalties{0, kAnySize, /*least_included=*/false};

// `what` names the member or key, with its file.
Result<std::optional<double>> InRange(std::optional<double> value, Range range,
                                      const std::string& what) {
  if (!value.has_value()) return value;
  // Written so that NaN fails too.
  const bool fits =
      *value <= range.most &&
      (range.least_included ? *value >= range.least : *value > range.least);
  if (!fits) {
    return {Code::kCorrupt,
            what + " is " + std::to_string(*value) +
                ", which is no such setting; correct or remove it"};
  }
  return value;
}

std::string Member(const std::string& label, const char* key) {
  return label + ": member " + Quoted(key);
}

Result<std::optional<double>> Number(const Json& json, const char* key,
                                     const std::string& label, Range range) {
  if (JsonFind(json, key) == nullptr) return std::optional<double>();
  HEARTH_ASSIGN(const double value, JsonNumber(json, key, label, 0));
  return InRange(value, range, Member(label, key));
}

Result<std::optional<double>> Number(const GgufFile& file, const char* key,
                                     Range range) {
  if (!file.Has(key)) return std::optional<double>();
  HEARTH_ASSIGN(const double value, file.Float(key, 0));
  return InRange(value, range, file.label() + ": key " + Quoted(key));
}

// A count; everything below zero means what zero means, as it does for the
// programs that write such files.
std::optional<int> Count(std::int64_t value) {
  return static_cast<int>(std::clamp<std::int64_t>(value, 0, INT32_MAX));
}

Result<std::vector<std::int32_t>> Ids(const Json& json, const char* key,
                                      const std::string& label,
                                      int vocab_size) {
  std::vector<std::int32_t> ids;
  const Json* list = JsonFind(json, key);
  if (list == nullptr) return ids;
  for (const Json& id : list->is_array() ? *list : Json::array({*list})) {
    if (!id.is_number_integer()) {
      return {Code::kCorrupt,
              Member(label, key) + " is not an integer or a list of integers"};
    }
    const auto value = id.get<std::int64_t>();
    if (value >= 0 && value < vocab_size) {
      ids.push_back(static_cast<std::int32_t>(value));
    }
  }
  return ids;
}

}  // namespace

Result<SamplingDefaults> ReadGenerationConfig(const Json& json,
                                              const std::string& label,
                                              int vocab_size) {
  SamplingDefaults out;
  HEARTH_ASSIGN(out.temperature,
                Number(json, "temperature", label, kTemperatures));
  HEARTH_ASSIGN(const bool samples, JsonBool(json, "do_sample", label, true));
  if (!samples) out.temperature = 0;
  if (JsonFind(json, "top_k") != nullptr) {
    HEARTH_ASSIGN(const std::int64_t top_k, JsonInt(json, "top_k", label));
    out.top_k = Count(top_k);
  }
  HEARTH_ASSIGN(out.top_p, Number(json, "top_p", label, kProbabilities));
  HEARTH_ASSIGN(out.min_p, Number(json, "min_p", label, kProbabilities));
  HEARTH_ASSIGN(out.repetition_penalty,
                Number(json, "repetition_penalty", label, kPenalties));
  HEARTH_ASSIGN(out.suppressed_ids,
                Ids(json, "suppress_tokens", label, vocab_size));
  return out;
}

Result<SamplingDefaults> ReadGgufSampling(const GgufFile& file) {
  SamplingDefaults out;
  HEARTH_ASSIGN(out.temperature,
                Number(file, "general.sampling.temp", kTemperatures));
  HEARTH_ASSIGN(out.top_p,
                Number(file, "general.sampling.top_p", kProbabilities));
  HEARTH_ASSIGN(out.min_p,
                Number(file, "general.sampling.min_p", kProbabilities));
  HEARTH_ASSIGN(out.repetition_penalty,
                Number(file, "general.sampling.penalty_repeat", kPenalties));
  constexpr const char* kTopK = "general.sampling.top_k";
  if (file.Has(kTopK)) {
    HEARTH_ASSIGN(const std::int64_t top_k, file.Int(kTopK));
    out.top_k = Count(top_k);
  }
  constexpr const char* kLastN = "general.sampling.penalty_last_n";
  if (file.Has(kLastN)) {
    HEARTH_ASSIGN(const std::int64_t last_n, file.Int(kLastN));
    // -1 stands for all of the context.
    out.repetition_tokens =
        last_n < 0 ? std::numeric_limits<int>::max() : Count(last_n);
  }
  return out;
}

}  // namespace hearth
