// 8-bit floats of the Open Compute Project's formats as plain bytes, made
// floats: exact, as binary32 has every one of their values.
#pragma once

#include <bit>
#include <cstdint>

#include "tensor/half.h"

namespace hearth {

// Four bits of exponent (bias 7), three of mantissa; no infinities, and NaN is
// all ones behind the sign (the "fn" form, which checkpoints have).
inline float E4M3ToFloat(std::uint8_t bits) {
  const std::uint32_t sign = std::uint32_t{bits & 0x80u} << 24;
  const std::uint32_t exponent = (bits >> 3) & 15u, mantissa = bits & 7u;
  if ((bits & 0x7fu) == 0x7fu) {
    return std::bit_cast<float>(sign | 0x7fc00000u);
  }
  if (exponent != 0) {
    return std::bit_cast<float>(sign | ((exponent + 120) << 23) |
                                (mantissa << 20));
  }
  const float magnitude = static_cast<float>(mantissa) * 0x1p-9f;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | sign);
}

// Five bits of exponent and two of mantissa: the upper half of an F16.
inline float E5M2ToFloat(std::uint8_t bits) {
  return ToFloat(F16{static_cast<std::uint16_t>(bits << 8)});
}

// A power of two, 2^(bits - 127); all ones is NaN.
inline float E8M0ToFloat(std::uint8_t bits) {
  if (bits == 255) return std::bit_cast<float>(0x7fc00000u);
  // 2^-127 is subnormal.
  return std::bit_cast<float>(bits == 0 ? 0x00400000u
                                        : std::uint32_t{bits} << 23);
}

}  // namespace hearth
