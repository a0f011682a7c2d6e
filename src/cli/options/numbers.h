// Numbers as people type them, with their limits. Errors (kInvalidArgument)
// say what was expected; the caller adds which option it was.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "hearth/result.h"

namespace hearth::cli {

// A whole number from `low` to `high`.
Result<std::int64_t> ParseInteger(const std::string& text, std::int64_t low,
                                  std::int64_t high);

// A finite number from `low` to `high`.
Result<double> ParseNumber(const std::string& text, double low, double high);

// Bytes: "4096", "20GB", "1.5G", "64Ki". K, M, G and T are powers of 1000,
// Ki, Mi, Gi and Ti of 1024.
Result<std::uint64_t> ParseSize(const std::string& text);

// 0 to 2^64 - 1; nothing for -1, which means a new one, as elsewhere.
Result<std::optional<std::uint64_t>> ParseSeed(const std::string& text);

}  // namespace hearth::cli
