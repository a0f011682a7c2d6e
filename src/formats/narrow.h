// double to float without undefined behaviour, for numbers from a file.
#pragma once

#include <limits>

namespace hearth {

// Beyond the range of a float: infinity, which every range check refuses.
inline float NarrowToFloat(double value) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  if (value > std::numeric_limits<float>::max()) return kInfinity;
  if (value < std::numeric_limits<float>::lowest()) return -kInfinity;
  return static_cast<float>(value);
}

}  // namespace hearth
