// 16-bit floats as plain bits, with explicit conversions. clang 14 has no
// _Float16 on x86-64, so the conversions are written out; the kernels use the
// CPU's own instructions and agree bit for bit with these.
#pragma once

#include <bit>
#include <cstdint>

namespace hearth {

struct F16 {
  std::uint16_t bits;
};
struct BF16 {
  std::uint16_t bits;
};

inline float ToFloat(BF16 h) {
  return std::bit_cast<float>(std::uint32_t{h.bits} << 16);
}

// IEEE binary16 to binary32, exact. Signalling NaNs become quiet, as F16C does.
inline float ToFloat(F16 h) {
  const std::uint32_t sign = std::uint32_t{h.bits & 0x8000u} << 16;
  const std::uint32_t exponent = (h.bits >> 10) & 31u;
  const std::uint32_t mantissa = h.bits & 0x3ffu;
  if (exponent == 31) {
    const std::uint32_t quiet = mantissa != 0 ? 0x400000u : 0u;
    return std::bit_cast<float>(sign | 0x7f800000u | quiet | (mantissa << 13));
  }
  if (exponent != 0) {
    return std::bit_cast<float>(sign | ((exponent + 112) << 23) |
                                (mantissa << 13));
  }
  // Subnormal: mantissa * 2^-24, exact in binary32.
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | sign);
}

// Rounds to nearest, ties to even; overflow gives infinity; NaN stays NaN.
inline F16 ToF16(float value) {
  const auto x = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (x >> 16) & 0x8000u;
  const std::uint32_t a = x & 0x7fffffffu;
  if (a >= 0x7f800000u) {
    const std::uint32_t nan =
        a > 0x7f800000u ? 0x200u | ((a >> 13) & 0x3ffu) : 0u;
    return {static_cast<std::uint16_t>(sign | 0x7c00u | nan)};
  }
  if (a >= 0x477ff000u) {  // 65520 and above round to infinity
    return {static_cast<std::uint16_t>(sign | 0x7c00u)};
  }
  if (a < 0x38800000u) {  // below 2^-14: subnormal or zero
    // Adding 0.5 aligns the result's unit with binary32's last bit.
    const float shifted = std::bit_cast<float>(a) + 0.5f;
    return {static_cast<std::uint16_t>(
        sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u))};
  }
  const std::uint32_t odd = (a >> 13) & 1u;
  return {static_cast<std::uint16_t>(sign |
                                     ((a - 0x38000000u + 0xfffu + odd) >> 13))};
}

// Rounds to nearest, ties to even; NaN stays NaN (quiet).
inline BF16 ToBF16(float value) {
  const auto x = std::bit_cast<std::uint32_t>(value);
  if ((x & 0x7fffffffu) > 0x7f800000u) {
    return {static_cast<std::uint16_t>((x >> 16) | 0x40u)};
  }
  return {static_cast<std::uint16_t>((x + 0x7fffu + ((x >> 16) & 1u)) >> 16)};
}

}  // namespace hearth
