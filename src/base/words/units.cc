#include "base/words/units.h"

#include <array>
#include <cstddef>

namespace hearth {

std::string InUnits(std::uint64_t bytes) {
  constexpr std::array kUnits = {" bytes", " KiB", " MiB", " GiB"};
  std::size_t unit = 0;
  // Of gibibytes ten at least, so that none of them is mostly rounding.
  constexpr std::array<std::uint64_t, 3> kMost = {1 << 10, 1 << 10, 10 << 10};
  for (; unit < kMost.size() && bytes >= kMost[unit]; ++unit) {
    bytes = bytes / 1024 + (bytes % 1024 != 0 ? 1 : 0);
  }
  return std::to_string(bytes) + kUnits[unit];
}

}  // namespace hearth
