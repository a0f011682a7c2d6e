// Importance matrices in either form: what is read has whole, finite sums.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "hearth/importance.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto matrix = hearth::ReadImportanceFromMemory(bytes, "fuzz");
  if (!matrix.ok()) return 0;
  if (matrix->entries.empty()) std::abort();
  for (const hearth::ImportanceEntry& entry : matrix->entries) {
    if (entry.counts.empty() || entry.sums.size() % entry.counts.size() != 0) {
      std::abort();
    }
    for (const float sum : entry.sums) {
      if (!std::isfinite(sum) || sum < 0) std::abort();
    }
  }
  return 0;
}
