// The scalar operations of docs/kernels.md, the same bits as the CPU's kernels:
// what one lane of generic/math.inl does, and conversions of number formats.
#pragma once

#include "cuda/simt.h"

#ifndef __CUDACC__
#include <bit>
#include <cmath>

#include "tensor/half.h"
#endif

namespace hearth::gpu {

#ifdef __CUDACC__
HEARTH_GPU float AsFloat(std::uint32_t bits) { return __uint_as_float(bits); }
HEARTH_GPU std::uint32_t AsBits(float x) { return __float_as_uint(x); }
HEARTH_GPU float Fma(float a, float b, float c) { return __fmaf_rn(a, b, c); }
HEARTH_GPU float Div(float a, float b) { return __fdiv_rn(a, b); }
HEARTH_GPU float Sqrt(float a) { return __fsqrt_rn(a); }
HEARTH_GPU float HalfToFloat(std::uint16_t h) {
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
  return f;
}
HEARTH_GPU std::uint16_t FloatToHalf(float x) {
  std::uint16_t h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));
  return h;
}
// acc plus the dot product of four signed bytes.
HEARTH_GPU int Dot4(std::uint32_t a, std::uint32_t b, int acc) {
  return __dp4a(static_cast<int>(a), static_cast<int>(b), acc);
}
#else
HEARTH_GPU float AsFloat(std::uint32_t bits) {
  return std::bit_cast<float>(bits);
}
HEARTH_GPU std::uint32_t AsBits(float x) {
  return std::bit_cast<std::uint32_t>(x);
}
HEARTH_GPU float Fma(float a, float b, float c) { return std::fma(a, b, c); }
HEARTH_GPU float Div(float a, float b) { return a / b; }
HEARTH_GPU float Sqrt(float a) { return std::sqrt(a); }
HEARTH_GPU float HalfToFloat(std::uint16_t h) { return ToFloat(F16{h}); }
HEARTH_GPU std::uint16_t FloatToHalf(float x) { return ToF16(x).bits; }
HEARTH_GPU int Dot4(std::uint32_t a, std::uint32_t b, int acc) {
  for (int i = 0; i < 32; i += 8) {
    acc += static_cast<std::int8_t>(a >> i) * static_cast<std::int8_t>(b >> i);
  }
  return acc;
}
#endif

HEARTH_GPU float Bf16ToFloat(std::uint16_t h) {
  return AsFloat(static_cast<std::uint32_t>(h) << 16);
}
HEARTH_GPU std::uint16_t FloatToBf16(float value) {
  const std::uint32_t x = AsBits(value);
  if ((x & 0x7fffffffu) > 0x7f800000u) {
    return static_cast<std::uint16_t>((x >> 16) | 0x40u);
  }
  return static_cast<std::uint16_t>((x + 0x7fffu + ((x >> 16) & 1u)) >> 16);
}
HEARTH_GPU float Infinity() { return AsFloat(0x7f800000u); }
HEARTH_GPU bool IsFinite(float x) {
  return (AsBits(x) & 0x7f800000u) != 0x7f800000u;
}
// The second operand when either is NaN or both are equal, as on x86.
HEARTH_GPU float Max(float a, float b) { return a > b ? a : b; }
HEARTH_GPU float Min(float a, float b) { return a < b ? a : b; }
HEARTH_GPU float Abs(float a) { return AsFloat(AsBits(a) & 0x7fffffffu); }

// The one tree: lane i meets i + 8, then i + 4, i + 2, i + 1. Overwrites.
template <int kWidth>
HEARTH_GPU void FoldLanes(float* lanes) {
  HEARTH_GPU_UNROLL
  for (int i = 0; i < kWidth; ++i) lanes[i] = lanes[i] + lanes[i + kWidth];
}
HEARTH_GPU float ReduceLanes(float* lanes) {
  FoldLanes<8>(lanes);
  FoldLanes<4>(lanes);
  FoldLanes<2>(lanes);
  return lanes[0] + lanes[1];
}

HEARTH_GPU float ExpInRange(float x) {
  const float magic = 0x1.8p23f;
  const float shifted = Fma(x, 0x1.715476p+0f, magic);
  const float n = shifted - magic;
  float r = Fma(-n, 0x1.62e400p-1f, x);
  r = Fma(-n, 0x1.7f7d1cp-20f, r);
  float p = 0x1.6d1272p-10f;
  p = Fma(p, r, 0x1.120cd6p-7f);
  p = Fma(p, r, 0x1.555518p-5f);
  p = Fma(p, r, 0x1.5554dcp-3f);
  p = Fma(p, r, 0.5f);
  p = Fma(p, r, 1.0f);
  p = Fma(p, r, 1.0f);
  return AsFloat(AsBits(p) + (AsBits(shifted) << 23));
}
HEARTH_GPU float ExpNegative(float x) {
  return x < -87.3f ? 0.0f : ExpInRange(x);
}
HEARTH_GPU float Exp(float x) {
  if (x != x) return x;
  return 88.72f < x ? Infinity() : ExpNegative(x);
}
HEARTH_GPU float ErfcPositive(float z) {
  const float t = Div(1.0f, Fma(z, 0.3f, 1.0f));
  float p = -0.13077087700366974f;
  p = Fma(p, t, 0.49193426966667175f);
  p = Fma(p, t, -0.5261516571044922f);
  p = Fma(p, t, 0.5645142197608948f);
  p = Fma(p, t, -0.10698336362838745f);
  p = Fma(p, t, 0.2205391675233841f);
  p = Fma(p, t, 0.14679601788520813f);
  p = Fma(p, t, 0.17094911634922028f);
  p = Fma(p, t, 0.16917306184768677f);
  const float e = Exp(Fma(-z, z, 0.0f));
  return e * (p * t);
}
HEARTH_GPU float Silu(float x) { return Div(x, 1.0f + Exp(0.0f - x)); }
HEARTH_GPU float GeluErf(float x) {
  const float e = ErfcPositive(Abs(x) * 0x1.6a09e6p-1f);
  const float both = x < 0.0f ? e : 2.0f - e;
  return (0.5f * x) * both;
}
HEARTH_GPU float GeluTanh(float x) {
  const float cubic = Fma(x * x, x * 0.044715f, x);
  const float e = Exp(cubic * -1.5957691216057308f);
  return Div(x, 1.0f + e);
}
HEARTH_GPU float Tanh(float x) {
  const float e = Exp(x * 2.0f);
  const float far = 1.0f - Div(2.0f, 1.0f + e);
  const float square = x * x;
  float p = -17.0f / 315.0f;
  p = Fma(p, square, 2.0f / 15.0f);
  p = Fma(p, square, -1.0f / 3.0f);
  const float near = Fma(p * square, x, x);
  return Abs(x) < 0.2f ? near : far;
}
HEARTH_GPU float Softcap(float x, float cap) { return Tanh(Div(x, cap)) * cap; }

}  // namespace hearth::gpu
