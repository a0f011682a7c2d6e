#include "tensor/quantize.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/bytes.h"
#include "base/check.h"
#include "tensor/half.h"

namespace hearth {
namespace {

constexpr int kBlock = 256;

// Rounded to nearest and bounded; NaN gives `low`.
int Code(float value, int low, int high) {
  if (!(value > static_cast<float>(low))) return low;
  if (value >= static_cast<float>(high)) return high;
  return static_cast<int>(std::nearbyint(value));
}

// 0 for scales so small that the inverse might overflow; as f16 they are 0 too.
float Inverse(float x) { return std::abs(x) > 0x1p-100f ? 1.0f / x : 0.0f; }

// Stores x as f16 and returns what was stored.
float PutHalf(float x, std::byte* out) {
  const F16 half = ToF16(x);
  StoreLe(out, half.bits);
  return ToFloat(half);
}

// The first value of largest magnitude, with its sign.
float Peak(const float* x, int n) {
  float peak = 0.0f;
  for (int i = 0; i < n; ++i) {
    if (std::abs(x[i]) > std::abs(peak)) peak = x[i];
  }
  return peak;
}

std::byte ToByte(int x) { return static_cast<std::byte>(x); }

// Codes come from the unrounded scale, and halves round away from zero.
void Q8_0(const float* x, std::byte* out) {
  const float scale = std::abs(Peak(x, 32)) / 127.0f;
  const float inverse = Inverse(scale);
  PutHalf(scale, out);
  for (int i = 0; i < 32; ++i) {
    out[2 + i] = ToByte(static_cast<int>(std::round(x[i] * inverse)));
  }
}

// The peak becomes code 0, which is -8 scales; adding 8.5 and cutting off
// rounds to nearest.
void Q4_0(const float* x, std::byte* out) {
  const float scale = Peak(x, 32) / -8.0f;
  const float inverse = Inverse(scale);
  PutHalf(scale, out);
  const auto code = [&](int i) {
    return std::min(15, static_cast<int>(x[i] * inverse + 8.5f));
  };
  for (int i = 0; i < 16; ++i) out[2 + i] = ToByte(code(i) | code(i + 16) << 4);
}

// The same with sixteen steps to each side; the fifth bits go apart.
void Q5_0(const float* x, std::byte* out) {
  const float scale = Peak(x, 32) / -16.0f;
  const float inverse = Inverse(scale);
  PutHalf(scale, out);
  const auto code = [&](int i) {
    return std::min(31, static_cast<int>(x[i] * inverse + 16.5f));
  };
  std::uint32_t bits = 0;
  for (int i = 0; i < 32; ++i) {
    bits |= static_cast<std::uint32_t>(code(i) >> 4) << i;
  }
  StoreLe(out + 2, bits);
  for (int i = 0; i < 16; ++i) {
    out[6 + i] = ToByte((code(i) & 15) | (code(i + 16) & 15) << 4);
  }
}

// --- Q4_K -------------------------------------------------------------------
struct ScaleAndMinimum {
  float scale = 0.0f;
  float minimum = 0.0f;  // >= 0; a value is scale * code - minimum
};

// Large values matter more to a dot product than small ones.
float Weight(float x, float rms) { return rms + std::abs(x); }

float Rms(const float* x, int n) {
  float sum = 0.0f;
  for (int i = 0; i < n; ++i) sum += x[i] * x[i];
  return std::sqrt(sum / static_cast<float>(n));
}

// The scale and minimum that fit 32 values best for the codes which a first
// guess gives them: weighted least squares.
ScaleAndMinimum Fit(const float* x, float rms, float inverse, float low) {
  double w = 0, wl = 0, wll = 0, wx = 0, wlx = 0;
  for (int i = 0; i < 32; ++i) {
    const double code = Code((x[i] - low) * inverse, 0, 15);
    const double weight = Weight(x[i], rms);
    w += weight;
    wl += weight * code;
    wll += weight * code * code;
    wx += weight * x[i];
    wlx += weight * code * x[i];
  }
  const double determinant = w * wll - wl * wl;
  if (!(determinant > 0)) return {};
  const double scale = (w * wlx - wl * wx) / determinant;
  const double offset = (wx - scale * wl) / w;
  if (offset <= 0) {
    return {static_cast<float>(scale), static_cast<float>(-offset)};
  }
  return {static_cast<float>(wll > 0 ? wlx / wll : 0), 0.0f};
}

double Error(const float* x, float rms, ScaleAndMinimum s) {
  const float inverse = Inverse(s.scale);
  double error = 0;
  for (int i = 0; i < 32; ++i) {
    const int code = Code((x[i] + s.minimum) * inverse, 0, 15);
    const double miss = s.scale * static_cast<float>(code) - s.minimum - x[i];
    error += Weight(x[i], rms) * miss * miss;
  }
  return error;
}

ScaleAndMinimum ChooseScaleAndMinimum(const float* x) {
  const float low = std::min(0.0f, *std::min_element(x, x + 32));
  const float high = *std::max_element(x, x + 32);
  if (!(high > low)) return {0.0f, -low};
  const float rms = Rms(x, 32);
  ScaleAndMinimum best{(high - low) / 15.0f, -low};
  double least = Error(x, rms, best);
  // Steps a little smaller or larger than the range asks for.
  for (int i = -10; i <= 10; ++i) {
    const float steps = 15.0f + 0.15f * static_cast<float>(i);
    const ScaleAndMinimum tried = Fit(x, rms, steps / (high - low), low);
    if (!(tried.scale > 0.0f)) continue;
    const double error = Error(x, rms, tried);
    if (error < least) {
      least = error;
      best = tried;
    }
  }
  return best;
}

// Six bits each of eight scales and minimums; docs/formats/tensor-types.md.
void PutSixBits(const std::array<int, 8>& scales,
                const std::array<int, 8>& minimums, std::byte* out) {
  for (int j = 0; j < 4; ++j) {
    out[j] = ToByte(scales[j] | scales[j + 4] >> 4 << 6);
    out[4 + j] = ToByte(minimums[j] | minimums[j + 4] >> 4 << 6);
    out[8 + j] = ToByte((scales[j + 4] & 15) | (minimums[j + 4] & 15) << 4);
  }
}

void Q4_K(const float* x, std::byte* out) {
  std::array<ScaleAndMinimum, 8> wanted;
  float scale_max = 0.0f;
  float minimum_max = 0.0f;
  for (int j = 0; j < 8; ++j) {
    wanted[j] = ChooseScaleAndMinimum(x + 32 * j);
    scale_max = std::max(scale_max, wanted[j].scale);
    minimum_max = std::max(minimum_max, wanted[j].minimum);
  }
  const float d = PutHalf(scale_max / 63.0f, out);
  const float dmin = PutHalf(minimum_max / 63.0f, out + 2);
  std::array<int, 8> scales, minimums;
  std::array<int, kBlock> codes;
  for (int j = 0; j < 8; ++j) {
    scales[j] = Code(wanted[j].scale * Inverse(d), 0, 63);
    minimums[j] = Code(wanted[j].minimum * Inverse(dmin), 0, 63);
    const float inverse = Inverse(d * static_cast<float>(scales[j]));
    const float minimum = dmin * static_cast<float>(minimums[j]);
    for (int i = 32 * j; i < 32 * j + 32; ++i) {
      codes[i] = Code((x[i] + minimum) * inverse, 0, 15);
    }
  }
  PutSixBits(scales, minimums, out + 4);
  for (int i = 0; i < 128; ++i) {
    const int first = i / 32 * 64 + i % 32;
    out[16 + i] = ToByte(codes[first] | codes[first + 32] << 4);
  }
}

// --- Q6_K -------------------------------------------------------------------
// A scale for 16 codes of -32..31. Tries to give the peak about -32 steps; for
// given codes the best scale is the projection, and the best codes are those
// whose projection explains most.
float ChooseScale(const float* x) {
  const float peak = Peak(x, 16);
  if (peak == 0.0f) return 0.0f;
  float best = 0.0f;
  double most = 0;
  for (int i = -9; i <= 9; ++i) {
    const float inverse = -(32.0f + 0.1f * static_cast<float>(i)) / peak;
    double wlx = 0, wll = 0;
    for (int k = 0; k < 16; ++k) {
      const double code = Code(x[k] * inverse, -32, 31);
      const double weight = double{x[k]} * x[k];
      wlx += weight * code * x[k];
      wll += weight * code * code;
    }
    if (wll > 0 && wlx * wlx > most * wll) {
      most = wlx * wlx / wll;
      best = static_cast<float>(wlx / wll);
    }
  }
  return best;
}

void Q6_K(const float* x, std::byte* out) {
  std::array<float, 16> wanted;
  for (int j = 0; j < 16; ++j) wanted[j] = ChooseScale(x + 16 * j);
  const float d = PutHalf(Peak(wanted.data(), 16) / -128.0f, out + 208);
  std::array<int, kBlock> codes;
  for (int j = 0; j < 16; ++j) {
    const int scale = Code(wanted[j] * Inverse(d), -128, 127);
    out[192 + j] = ToByte(scale);
    const float inverse = Inverse(d * static_cast<float>(scale));
    for (int i = 16 * j; i < 16 * j + 16; ++i) {
      codes[i] = Code(x[i] * inverse, -32, 31) + 32;
    }
  }
  for (int half = 0; half < 2; ++half) {
    const int* c = codes.data() + 128 * half;
    for (int i = 0; i < 64; ++i) {
      out[64 * half + i] = ToByte((c[i] & 15) | (c[i + 64] & 15) << 4);
    }
    for (int i = 0; i < 32; ++i) {
      out[128 + 32 * half + i] =
          ToByte(c[i] >> 4 | c[i + 32] >> 4 << 2 | c[i + 64] >> 4 << 4 |
                 c[i + 96] >> 4 << 6);
    }
  }
}

using BlockFunction = void (*)(const float*, std::byte*);

BlockFunction FunctionFor(DType dtype) {
  switch (dtype) {
    case DType::kQ8_0:
      return Q8_0;
    case DType::kQ4_0:
      return Q4_0;
    case DType::kQ5_0:
      return Q5_0;
    case DType::kQ4_K:
      return Q4_K;
    case DType::kQ6_K:
      return Q6_K;
    default:
      return nullptr;
  }
}

}  // namespace

bool CanQuantize(DType dtype) { return FunctionFor(dtype) != nullptr; }

void QuantizeRow(DType dtype, const float* x, std::int64_t n, std::byte* out) {
  const DTypeInfo& info = InfoOf(dtype);
  const BlockFunction quantize = FunctionFor(dtype);
  HEARTH_CHECK(quantize != nullptr && n % info.block_elements == 0);
  for (std::int64_t i = 0; i < n; i += info.block_elements) {
    quantize(x + i, out);
    out += info.block_bytes;
  }
}

}  // namespace hearth
