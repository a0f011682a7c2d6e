// Blocks of 32 values with one scale, and perhaps a minimum, that follow from
// the extremes: what GGUF's reference quantiser writes, byte for byte. Where
// columns' importance is known, scale and minimum are searched for instead.
#include <cstdint>
#include <cstring>

#include "tensor/quantize/block.h"

namespace hearth {
namespace {

void PutNibbles(const std::array<int, 32>& codes, std::byte* out) {
  for (std::size_t i = 0; i < 16; ++i) {
    out[i] = ToByte((codes[i] & 15) | (codes[i + 16] & 15) << 4);
  }
}

void PutFifthBits(const std::array<int, 32>& codes, std::byte* out) {
  std::uint32_t bits = 0;
  for (std::size_t i = 0; i < 32; ++i) {
    bits |= static_cast<std::uint32_t>(codes[i] >> 4) << i;
  }
  StoreLe(out, bits);
}

// The peak becomes code 0, which is -`half` scales; adding half a code and
// cutting off rounds to nearest. The scale is stored first.
std::array<int, 32> SignedCodes(const float* x, const float* importance,
                                int half, std::byte* out) {
  if (importance != nullptr) {
    return WeightedSignedCodes(x, importance, half, out);
  }
  const float scale = Peak(x, 32) / static_cast<float>(-half);
  const float inverse = Inverse(scale);
  PutHalf(scale, out);
  const float middle = static_cast<float>(half) + 0.5f;
  std::array<int, 32> codes;
  for (std::size_t i = 0; i < 32; ++i) {
    codes[i] =
        std::min(2 * half - 1, static_cast<int>(x[i] * inverse + middle));
  }
  return codes;
}

// The lowest value becomes code 0, the highest the last one. Scale and minimum
// are stored first. A range beyond binary32 is cut.
std::array<int, 32> RangeCodes(const float* x, const float* importance,
                               int last, std::byte* out) {
  if (importance != nullptr) {
    return WeightedRangeCodes(x, importance, last, out);
  }
  const float low = *std::min_element(x, x + 32);
  const float high = *std::max_element(x, x + 32);
  const float range = std::isfinite(high - low) ? high - low : 0x1.fffffep127f;
  const float scale = range / static_cast<float>(last);
  const float inverse = Inverse(scale);
  PutHalf(scale, out);
  PutHalf(low, out + 2);
  std::array<int, 32> codes;
  for (std::size_t i = 0; i < 32; ++i) {
    const float above = std::min(x[i] - low, range);
    codes[i] = std::min(last, static_cast<int>(above * inverse + 0.5f));
  }
  return codes;
}

}  // namespace

// Codes come from the unrounded scale, and halves round away from zero.
void PutQ8_0(const float* x, const float* /*importance*/, std::byte* out) {
  const float scale = std::abs(Peak(x, 32)) / 127.0f;
  const float inverse = Inverse(scale);
  PutHalf(scale, out);
  for (int i = 0; i < 32; ++i) {
    const float scaled = x[i] * inverse;
    const int whole = static_cast<int>(scaled);
    const float rest = scaled - static_cast<float>(whole);
    out[2 + i] = ToByte(whole + (rest >= 0.5f) - (rest <= -0.5f));
  }
}

void PutQ4_0(const float* x, const float* importance, std::byte* out) {
  PutNibbles(SignedCodes(x, importance, 8, out), out + 2);
}

void PutQ4_1(const float* x, const float* importance, std::byte* out) {
  PutNibbles(RangeCodes(x, importance, 15, out), out + 4);
}

void PutQ5_0(const float* x, const float* importance, std::byte* out) {
  const std::array<int, 32> codes = SignedCodes(x, importance, 16, out);
  PutFifthBits(codes, out + 2);
  PutNibbles(codes, out + 6);
}

void PutQ5_1(const float* x, const float* importance, std::byte* out) {
  const std::array<int, 32> codes = RangeCodes(x, importance, 31, out);
  PutFifthBits(codes, out + 4);
  PutNibbles(codes, out + 8);
}

}  // namespace hearth
