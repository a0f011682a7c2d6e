// Blocks as files have them (docs/formats/tensor-types.md) made the forms of
// matrix.h, one group of 32 values at a time.
#pragma once

#include "cuda/kernels/matrix.h"

namespace hearth::gpu {

// Numbered as tensor/dtype.h, which a GPU's compiler need not read.
enum class FileType : std::uint8_t {
  kQ8_0 = 3,
  kQ4_0 = 4,
  kQ4_1 = 6,
  kQ5_0 = 7,
  kQ5_1 = 8,
  kQ2_K = 9,
  kQ3_K = 10,
  kQ4_K = 11,
  kQ5_K = 12,
  kQ6_K = 13,
  kIQ4_NL = 14,
  kIQ4_XS = 15,
  kMXFP4 = 16,
};

struct RepackArgs {
  FileType type;
  const std::uint8_t* from;              // whole blocks, at any alignment
  std::int64_t first_group;              // of the matrix, where `from` is
  std::int64_t n_groups;                 // from there on
  std::uint8_t *codes, *scales, *small;  // of the matrix
};
inline constexpr int kRepackThreads = 128;

HEARTH_GPU int Nibble32(const std::uint8_t* p, int i) {
  return (p[i % 16] >> (i / 16 * 4)) & 15;
}
HEARTH_GPU int Iq4Value(int code) {
  constexpr std::int8_t kValues[16] = {
      -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
  return kValues[code];
}
HEARTH_GPU int DoubledMxfp4Value(int code) {
  constexpr std::int8_t kValues[16] = {0, 1,  2,  3,  4,  6,  8,  12,
                                       0, -1, -2, -3, -4, -6, -8, -12};
  return kValues[code];
}
// The six-bit scale or minimum j of 8 in twelve bytes.
HEARTH_GPU int SixBits(const std::uint8_t* p, int j, bool minimum) {
  const std::uint8_t* low = p + (minimum ? 4 : 0);
  if (j < 4) return low[j] & 63;
  return ((p[4 + j] >> (minimum ? 4 : 0)) & 15) | low[j - 4] >> 6 << 4;
}

// Code i of group g of a block, as the form has it: 0..15, or signed.
HEARTH_GPU int CodeOf(FileType type, const std::uint8_t* p, int g, int i) {
  switch (type) {
    case FileType::kQ8_0:
      return static_cast<std::int8_t>(p[2 + i]);
    case FileType::kQ4_0:
      return Nibble32(p + 2, i);
    case FileType::kQ4_1:
      return Nibble32(p + 4, i);
    case FileType::kQ5_0:
      return (Nibble32(p + 6, i) | ((p[2 + i / 8] >> i % 8) & 1) << 4) - 16;
    case FileType::kQ5_1:
      return Nibble32(p + 8, i) | ((p[4 + i / 8] >> i % 8) & 1) << 4;
    case FileType::kQ2_K:
      return (p[16 + g / 4 * 32 + i] >> (g % 4 * 2)) & 3;
    case FileType::kQ3_K:
      return ((p[32 + g / 4 * 32 + i] >> (g % 4 * 2)) & 3) | ((p[i] >> g) & 1)
                                                                 << 2;
    case FileType::kQ4_K:
      return (p[16 + g / 2 * 32 + i] >> (g % 2 * 4)) & 15;
    case FileType::kQ5_K:
      return ((p[48 + g / 2 * 32 + i] >> (g % 2 * 4)) & 15) |
             ((p[16 + i] >> g) & 1) << 4;
    case FileType::kQ6_K: {
      const int low = p[g / 4 * 64 + g % 2 * 32 + i] >> (g / 2 % 2 * 4);
      const int high = p[128 + g / 4 * 32 + i] >> (g % 4 * 2);
      return ((low & 15) | (high & 3) << 4) - 32;
    }
    case FileType::kIQ4_NL:
      return Iq4Value(Nibble32(p + 2, i));
    case FileType::kIQ4_XS:
      return Iq4Value(Nibble32(p + 8 + 16 * g, i));
    case FileType::kMXFP4:
      return DoubledMxfp4Value(Nibble32(p + 1, i));
  }
  return 0;
}

HEARTH_GPU void PutHalf(std::uint8_t* to, const std::uint8_t* from,
                        bool negated) {
  to[0] = from[0];
  to[1] = static_cast<std::uint8_t>(negated ? from[1] ^ 0x80 : from[1]);
}

// 2^(e - 128) as a product of two, since the lowest are subnormal.
HEARTH_GPU float Mxfp4Scale(int e) {
  const int low = e / 2;
  const auto power = [](int n) {
    return AsFloat(static_cast<std::uint32_t>(n + 127) << 23);
  };
  return power(low - 64) * power(e - low - 64);
}

// Scales of group `at` of the matrix, group g of the block p.
HEARTH_GPU void PutScales(const RepackArgs& a, const std::uint8_t* p,
                          std::int64_t at, int g) {
  std::uint8_t* flat = a.scales + at * 2;
  std::uint8_t* super = a.scales + at / 8 * 2;
  switch (a.type) {
    case FileType::kQ8_0:
    case FileType::kQ4_0:
    case FileType::kQ5_0:
    case FileType::kIQ4_NL:
      PutHalf(flat, p, false);
      break;
    case FileType::kQ4_1:
    case FileType::kQ5_1:
      // What is subtracted is a minimum.
      PutHalf(a.scales + at * 4, p, false);
      PutHalf(a.scales + at * 4 + 2, p + 2, true);
      break;
    case FileType::kQ2_K:
      if (g == 0) PutHalf(a.scales + at / 8 * 4, p + 80, false);
      if (g == 0) PutHalf(a.scales + at / 8 * 4 + 2, p + 82, false);
      for (int i = 0; i < 2; ++i) {
        a.small[at * 4 + i] = p[2 * g + i] & 15;
        a.small[at * 4 + 2 + i] = p[2 * g + i] >> 4;
      }
      break;
    case FileType::kQ3_K:
      if (g == 0) PutHalf(super, p + 108, false);
      for (int i = 0; i < 2; ++i) {
        const int j = 2 * g + i;
        const int low = (p[96 + j % 8] >> (j / 8 * 4)) & 15;
        const int high = (p[104 + j % 4] >> (j / 4 * 2)) & 3;
        a.small[at * 2 + i] = static_cast<std::uint8_t>((low | high << 4) - 32);
      }
      break;
    case FileType::kQ4_K:
    case FileType::kQ5_K:
      if (g == 0) PutHalf(a.scales + at / 8 * 4, p, false);
      if (g == 0) PutHalf(a.scales + at / 8 * 4 + 2, p + 2, false);
      a.small[at * 2] = static_cast<std::uint8_t>(SixBits(p + 4, g, false));
      a.small[at * 2 + 1] = static_cast<std::uint8_t>(SixBits(p + 4, g, true));
      break;
    case FileType::kQ6_K:
      if (g == 0) PutHalf(super, p + 208, false);
      a.small[at * 2] = p[192 + 2 * g];
      a.small[at * 2 + 1] = p[193 + 2 * g];
      break;
    case FileType::kIQ4_XS: {
      if (g == 0) PutHalf(super, p, false);
      const int low = (p[4 + g / 2] >> (g % 2 * 4)) & 15;
      const int high = (p[2 + g / 4] >> (g % 4 * 2)) & 3;
      a.small[at] = static_cast<std::uint8_t>((low | high << 4) - 32);
      break;
    }
    case FileType::kMXFP4:
      reinterpret_cast<float*>(a.scales)[at] = Mxfp4Scale(p[0]);
      break;
  }
}

struct BlockShape {
  int groups, bytes;
  bool nibbles;
};
HEARTH_GPU BlockShape ShapeOf(FileType type) {
  switch (type) {
    case FileType::kQ8_0:
      return {1, 34, false};
    case FileType::kQ4_0:
      return {1, 18, true};
    case FileType::kQ4_1:
      return {1, 20, true};
    case FileType::kQ5_0:
      return {1, 22, false};
    case FileType::kQ5_1:
      return {1, 24, false};
    case FileType::kQ2_K:
      return {8, 84, true};
    case FileType::kQ3_K:
      return {8, 110, true};
    case FileType::kQ4_K:
      return {8, 144, true};
    case FileType::kQ5_K:
      return {8, 176, false};
    case FileType::kQ6_K:
      return {8, 210, false};
    case FileType::kIQ4_NL:
      return {1, 18, false};
    case FileType::kIQ4_XS:
      return {8, 136, false};
    case FileType::kMXFP4:
      break;
  }
  return {1, 17, false};
}

// grid: groups / kRepackThreads, rounded up.
HEARTH_GPU void Repack(const Block& block, const RepackArgs& a) {
  block.Await();
  const BlockShape shape = ShapeOf(a.type);
  block.ForThreads([&](int thread) {
    const std::int64_t i = std::int64_t{block.x()} * kRepackThreads + thread;
    if (i >= a.n_groups) return;
    const int g = static_cast<int>(i % shape.groups);
    const std::uint8_t* p = a.from + i / shape.groups * shape.bytes;
    const std::int64_t at = a.first_group + i;
    PutScales(a, p, at, g);
    if (shape.nibbles) {
      for (int k = 0; k < 16; ++k) {
        a.codes[at * 16 + k] = static_cast<std::uint8_t>(
            CodeOf(a.type, p, g, k) | CodeOf(a.type, p, g, 16 + k) << 4);
      }
    } else {
      for (int k = 0; k < 32; ++k) {
        a.codes[at * 32 + k] =
            static_cast<std::uint8_t>(CodeOf(a.type, p, g, k));
      }
    }
  });
}

}  // namespace hearth::gpu
