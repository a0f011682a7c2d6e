// Inside tensor: what the writers of block formats share.
//
// A block of 256 values is brought to a peak of [0.5, 1) by a power of two
// before anything is searched, so that neither squares of tiny values vanish
// nor those of huge ones overflow. All arithmetic is binary32 in a fixed order
// (sums in eight lanes) or binary64: the same bytes on every machine.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "base/bytes.h"
#include "tensor/half.h"

namespace hearth {

inline constexpr int kLanes = 8;

inline std::byte ToByte(int x) { return static_cast<std::byte>(x); }

// 0 for scales so small that the inverse might overflow; as f16 they are 0 too.
inline float Inverse(float x) {
  return std::abs(x) > 0x1p-100f ? 1.0f / x : 0.0f;
}

// To the nearest integer, ties to even. REQUIRES: |x| < 2^22.
inline float Rounded(float x) { return (x + 0x1.8p23f) - 0x1.8p23f; }

// Rounded and bounded; NaN gives `low`.
inline float CodeOf(float x, float low, float high) {
  return Rounded(std::min(std::max(low, x), high));
}

// Stores x as f16, bounded to what is finite there, and returns what was
// stored.
inline float PutHalf(float x, std::byte* out) {
  const F16 half = ToF16(std::clamp(x, -65504.0f, 65504.0f));
  StoreLe(out, half.bits);
  return ToFloat(half);
}

// The first value of largest magnitude, with its sign.
inline float Peak(const float* x, int n) {
  float peak = 0.0f;
  for (int i = 0; i < n; ++i) {
    if (std::abs(x[i]) > std::abs(peak)) peak = x[i];
  }
  return peak;
}

inline float SumOf(const float (&lanes)[kLanes]) {
  float sum = 0.0f;
  for (const float lane : lanes) sum += lane;
  return sum;
}

// 256 values times 2^-exponent.
class ScaledBlock {
 public:
  explicit ScaledBlock(const float* x) {
    const float peak = std::abs(Peak(x, 256));
    if (peak == 0.0f) return;
    std::frexp(peak, &exponent_);
    const double factor = std::ldexp(1.0, -exponent_);
    for (std::size_t i = 0; i < 256; ++i) {
      values_[i] = static_cast<float>(double{x[i]} * factor);
    }
    zero_ = false;
  }

  bool zero() const { return zero_; }
  const float* values() const { return values_.data(); }
  // Stores a scale of these values as one of the original ones; returns what
  // was stored, as a scale of these values.
  float PutScale(float scale, std::byte* out) const {
    const double wanted = std::ldexp(double{scale}, exponent_);
    const float stored =
        PutHalf(static_cast<float>(std::clamp(wanted, -65504.0, 65504.0)), out);
    return static_cast<float>(std::ldexp(double{stored}, -exponent_));
  }

 private:
  std::array<float, 256> values_{};
  int exponent_ = 0;
  bool zero_ = true;
};

// How much an error of each column counts, above 0 and at most 1.
class ColumnWeights {
 public:
  // Columns that no input ever reached still count a little, so that no search
  // divides by nothing. Null: all count alike.
  ColumnWeights(const float* importance, int n) {
    values_.fill(1.0f);
    if (importance == nullptr) return;
    const float largest = *std::max_element(importance, importance + n);
    if (!(largest > 0)) return;
    for (int i = 0; i < n; ++i) {
      values_[static_cast<std::size_t>(i)] =
          std::max(importance[i] / largest, 0x1p-20f);
    }
  }
  // Times sqrt(extra + x^2): large values matter more. `extra` is `factor`
  // times the mean of the squares.
  void WeighBySize(const float* x, int n, float factor) {
    float square = 0.0f;
    for (int i = 0; i < n; ++i) square += x[i] * x[i];
    const float extra = factor * square / static_cast<float>(n);
    for (int i = 0; i < n; ++i) {
      values_[static_cast<std::size_t>(i)] *= std::sqrt(extra + x[i] * x[i]);
    }
  }
  const float* data() const { return values_.data(); }

 private:
  std::array<float, 256> values_;
};

// Codes of 32 values, weighted: of Q4_0 and Q5_0 with a scale, of Q4_1 and Q5_1
// with a scale and a minimum, which are stored first. plain_blocks.cc has them
// without weights. REQUIRES: importance.
std::array<int, 32> WeightedSignedCodes(const float* x, const float* importance,
                                        int half, std::byte* out);
std::array<int, 32> WeightedRangeCodes(const float* x, const float* importance,
                                       int last, std::byte* out);

// One block each, dequantize.cc's counterparts. A block of the K formats and of
// IQ4_XS is 256 values, of the others 32. Any finite values. `importance` of
// each column, at least 0, or null: docs/formats/tensor-types.md.
void PutQ8_0(const float* x, const float* importance, std::byte* out);
void PutQ4_0(const float* x, const float* importance, std::byte* out);
void PutQ4_1(const float* x, const float* importance, std::byte* out);
void PutQ5_0(const float* x, const float* importance, std::byte* out);
void PutQ5_1(const float* x, const float* importance, std::byte* out);
void PutQ2_K(const float* x, const float* importance, std::byte* out);
void PutQ3_K(const float* x, const float* importance, std::byte* out);
void PutQ4_K(const float* x, const float* importance, std::byte* out);
void PutQ5_K(const float* x, const float* importance, std::byte* out);
void PutQ6_K(const float* x, const float* importance, std::byte* out);
void PutIq4Nl(const float* x, const float* importance, std::byte* out);
void PutIq4Xs(const float* x, const float* importance, std::byte* out);

}  // namespace hearth
