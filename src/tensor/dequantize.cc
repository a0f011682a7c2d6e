#include "tensor/dequantize.h"

#include "base/bytes.h"
#include "base/check.h"
#include "tensor/codebook/spelled_block.h"
#include "tensor/half.h"

namespace hearth {
namespace {

int Byte(const std::byte* p) { return std::to_integer<int>(*p); }

float Half(const std::byte* p) {
  return ToFloat(F16{LoadLe<std::uint16_t>(p)});
}

// Code i of 32: the low nibbles of 16 bytes, then the high ones.
int Nibble32(const std::byte* p, int i) {
  return (Byte(p + i % 16) >> (i / 16 * 4)) & 15;
}

int Bit32(const std::byte* p, int i) {
  return static_cast<int>((LoadLe<std::uint32_t>(p) >> i) & 1u);
}

// The six-bit scale or minimum j of 8: bytes 0-3 and 4-7 hold the first four
// of each, with the high bits of the last four in their top two bits.
int SixBits(const std::byte* p, int j, bool minimum) {
  const std::byte* low = p + (minimum ? 4 : 0);
  if (j < 4) return Byte(low + j) & 63;
  const int nibble = (Byte(p + 4 + j) >> (minimum ? 4 : 0)) & 15;
  return nibble | Byte(low + j - 4) >> 6 << 4;
}

// 2^(e - 128); subnormal for the lowest exponents.
float HalfPowerOfTwo(int e) {
  const int low = e / 2;
  const auto power = [](int n) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(n + 127) << 23);
  };
  return power(low - 64) * power(e - low - 64);
}

// One block each.

void Q8_0(const std::byte* p, float* out) {
  const float d = Half(p);
  for (int i = 0; i < 32; ++i) {
    out[i] = d * static_cast<float>(static_cast<std::int8_t>(p[2 + i]));
  }
}

void Q4_0(const std::byte* p, float* out) {
  const float d = Half(p);
  for (int i = 0; i < 32; ++i) {
    out[i] = d * static_cast<float>(Nibble32(p + 2, i) - 8);
  }
}

void Q4_1(const std::byte* p, float* out) {
  const float d = Half(p);
  const float m = Half(p + 2);
  for (int i = 0; i < 32; ++i) {
    out[i] = d * static_cast<float>(Nibble32(p + 4, i)) + m;
  }
}

void Q5_0(const std::byte* p, float* out) {
  const float d = Half(p);
  for (int i = 0; i < 32; ++i) {
    const int code = Nibble32(p + 6, i) | Bit32(p + 2, i) << 4;
    out[i] = d * static_cast<float>(code - 16);
  }
}

void Q5_1(const std::byte* p, float* out) {
  const float d = Half(p);
  const float m = Half(p + 2);
  for (int i = 0; i < 32; ++i) {
    const int code = Nibble32(p + 8, i) | Bit32(p + 4, i) << 4;
    out[i] = d * static_cast<float>(code) + m;
  }
}

void Q2_K(const std::byte* p, float* out) {
  const float d = Half(p + 80);
  const float dmin = Half(p + 82);
  for (int i = 0; i < 256; ++i) {
    const int scales = Byte(p + i / 16);
    const int code =
        (Byte(p + 16 + i / 128 * 32 + i % 32) >> (i / 32 % 4 * 2)) & 3;
    const float scale = d * static_cast<float>(scales & 15);
    out[i] = scale * static_cast<float>(code) -
             dmin * static_cast<float>(scales >> 4);
  }
}

void Q3_K(const std::byte* p, float* out) {
  const float d = Half(p + 108);
  const std::byte* scales = p + 96;
  for (int i = 0; i < 256; ++i) {
    const int j = i / 16;
    const int low = (Byte(scales + j % 8) >> (j / 8 * 4)) & 15;
    const int high = (Byte(scales + 8 + j % 4) >> (j / 4 * 2)) & 3;
    const float scale = d * static_cast<float>((low | high << 4) - 32);
    const int code =
        ((Byte(p + 32 + i / 128 * 32 + i % 32) >> (i / 32 % 4 * 2)) & 3) |
        ((Byte(p + i % 32) >> (i / 32)) & 1) << 2;
    out[i] = scale * static_cast<float>(code - 4);
  }
}

void Q4_K(const std::byte* p, float* out) {
  const float d = Half(p);
  const float dmin = Half(p + 2);
  for (int i = 0; i < 256; ++i) {
    const int j = i / 32;
    const int code = (Byte(p + 16 + i / 64 * 32 + i % 32) >> (j % 2 * 4)) & 15;
    const float scale = d * static_cast<float>(SixBits(p + 4, j, false));
    out[i] = scale * static_cast<float>(code) -
             dmin * static_cast<float>(SixBits(p + 4, j, true));
  }
}

void Q5_K(const std::byte* p, float* out) {
  const float d = Half(p);
  const float dmin = Half(p + 2);
  for (int i = 0; i < 256; ++i) {
    const int j = i / 32;
    const int code =
        ((Byte(p + 48 + i / 64 * 32 + i % 32) >> (j % 2 * 4)) & 15) |
        ((Byte(p + 16 + i % 32) >> j) & 1) << 4;
    const float scale = d * static_cast<float>(SixBits(p + 4, j, false));
    out[i] = scale * static_cast<float>(code) -
             dmin * static_cast<float>(SixBits(p + 4, j, true));
  }
}

void Q6_K(const std::byte* p, float* out) {
  const float d = Half(p + 208);
  for (int i = 0; i < 256; ++i) {
    const int half = i / 128;
    const int low = Byte(p + half * 64 + i % 64) >> (i / 64 % 2 * 4);
    const int high = Byte(p + 128 + half * 32 + i % 32) >> (i / 32 % 4 * 2);
    const int code = (low & 15) | (high & 3) << 4;
    const auto scale = static_cast<std::int8_t>(p[192 + i / 16]);
    out[i] = d * static_cast<float>(scale) * static_cast<float>(code - 32);
  }
}

void Iq4Nl(const std::byte* p, float* out) {
  const float d = Half(p);
  for (int i = 0; i < 32; ++i) {
    out[i] = d * static_cast<float>(kIq4Values[Nibble32(p + 2, i)]);
  }
}

void Iq4Xs(const std::byte* p, float* out) {
  const float d = Half(p);
  for (int i = 0; i < 256; ++i) {
    const int j = i / 32;
    const int low = (Byte(p + 4 + j / 2) >> (j % 2 * 4)) & 15;
    const int high = (LoadLe<std::uint16_t>(p + 2) >> (2 * j)) & 3;
    const float scale = d * static_cast<float>((low | high << 4) - 32);
    const int code = Nibble32(p + 8 + 16 * j, i % 32);
    out[i] = scale * static_cast<float>(kIq4Values[code]);
  }
}

void Mxfp4(const std::byte* p, float* out) {
  const float d = HalfPowerOfTwo(Byte(p));
  for (int i = 0; i < 32; ++i) {
    out[i] = d * static_cast<float>(kMxfp4Values[Nibble32(p + 1, i)]);
  }
}

void DequantizeSpelled(DType dtype, const std::byte* row, std::int64_t n,
                       float* out) {
  const DTypeInfo& info = InfoOf(dtype);
  HEARTH_CHECK(n % info.block_elements == 0);
  for (std::int64_t at = 0; at < n; at += info.block_elements) {
    SpelledBlock block;
    SpellOut(dtype, row, block);
    for (int i = 0; i < info.block_elements; ++i) {
      out[at + i] = block.scales[i / 16] *
                    static_cast<float>(int{block.codes[i]} - kSpelledBias);
    }
    row += info.block_bytes;
  }
}

using BlockFunction = void (*)(const std::byte*, float*);

BlockFunction FunctionFor(DType dtype) {
  switch (dtype) {
    case DType::kQ8_0:
      return Q8_0;
    case DType::kQ4_0:
      return Q4_0;
    case DType::kQ4_1:
      return Q4_1;
    case DType::kQ5_0:
      return Q5_0;
    case DType::kQ5_1:
      return Q5_1;
    case DType::kQ2_K:
      return Q2_K;
    case DType::kQ3_K:
      return Q3_K;
    case DType::kQ4_K:
      return Q4_K;
    case DType::kQ5_K:
      return Q5_K;
    case DType::kQ6_K:
      return Q6_K;
    case DType::kIQ4_NL:
      return Iq4Nl;
    case DType::kIQ4_XS:
      return Iq4Xs;
    case DType::kMXFP4:
      return Mxfp4;
    default:  // plain, of .tinygpt, or spelled out
      break;
  }
  return nullptr;
}

}  // namespace

void DequantizeBlocks(DType dtype, const std::byte* row, std::int64_t n,
                      float* out) {
  const DTypeInfo& info = InfoOf(dtype);
  if (IsSpelledOut(dtype)) return DequantizeSpelled(dtype, row, n, out);
  const BlockFunction dequantize = FunctionFor(dtype);
  HEARTH_CHECK(dequantize != nullptr && n % info.block_elements == 0);
  for (std::int64_t i = 0; i < n; i += info.block_elements) {
    dequantize(row, out + i);
    row += info.block_bytes;
  }
}

}  // namespace hearth
