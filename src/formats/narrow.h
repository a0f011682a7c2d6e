// Numbers from a file that may be hostile, made numbers of other types without
// undefined behaviour.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "hearth/result.h"

namespace hearth {

// Beyond the range of a float: infinity, which every range check refuses.
inline float NarrowToFloat(double value) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  if (value > std::numeric_limits<float>::max()) return kInfinity;
  if (value < std::numeric_limits<float>::lowest()) return -kInfinity;
  return static_cast<float>(value);
}

// A size: kCorrupt, "label: what has the impossible value ...", unless it is
// 0 .. 2^31 - 1. Whether it makes sense is CheckConfig's business. An error
// stays what it is.
Result<int> NarrowToSize(Result<std::int64_t> value, const std::string& label,
                         const std::string& what);

}  // namespace hearth
