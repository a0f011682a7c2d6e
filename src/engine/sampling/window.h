// The newest tokens of a history.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

namespace hearth {

// The last `n` of `tokens`; -1: all of them.
inline std::span<const std::int32_t> Newest(
    std::span<const std::int32_t> tokens, int n) {
  return n < 0 ? tokens
               : tokens.last(
                     std::min(tokens.size(), static_cast<std::size_t>(n)));
}

}  // namespace hearth
