// Logits after what users add to them.
#pragma once

#include <algorithm>
#include <limits>

namespace hearth {

// Finite, and far enough from the limits that a difference of two is, too.
inline float ToLogit(double value) {
  constexpr double kMost = double{std::numeric_limits<float>::max()} / 4;
  return static_cast<float>(std::clamp(value, -kMost, kMost));
}

}  // namespace hearth
