// Which bits a device computes. Two devices of one numerics give the same
// results bit for bit, so what one has stored serves the other.
#pragma once

#include <cstdint>
#include <string_view>

namespace hearth {

// Change it when any bit of any result of the kernels changes.
inline constexpr std::uint32_t kNumericsVersion = 1;

struct Numerics {
  std::uint32_t version = kNumericsVersion;
  // Empty: the order of operations of docs/kernels.md, which every CPU keeps.
  std::string_view profile = {};

  friend bool operator==(const Numerics&, const Numerics&) = default;
};

}  // namespace hearth
