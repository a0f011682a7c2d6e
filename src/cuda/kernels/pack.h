// Activations made int8 for products with weights in blocks: the codes, scales
// and sums of generic/pack.inl.
#pragma once

#include "cuda/kernels/matrix.h"

namespace hearth::gpu {

// What packing n values needs in shared memory, in words of four values.
struct PackMemory {
  float* values;   // [n]
  float* largest;  // [n / 4]: the largest magnitude, NaN where one is
  int* sums;       // [n / 4]: of the codes

  HEARTH_GPU PackMemory(float* at, int n)
      : values(at),
        largest(at + n),
        sums(reinterpret_cast<int*>(at + n + n / 4)) {}
};
HEARTH_GPU constexpr int PackFloats(int n) { return n + n / 2; }

struct PackRange {
  float largest;
  bool nan;
  HEARTH_GPU bool tiny() const { return largest < 0x1p-100f; }
};
// Of the group that a word is one of eight of.
HEARTH_GPU PackRange RangeOf(const PackMemory& m, int word) {
  PackRange range = {0.0f, false};
  HEARTH_GPU_UNROLL
  for (int i = 0; i < 8; ++i) {
    const float largest = m.largest[word / 8 * 8 + i];
    range.nan = range.nan || largest != largest;
    range.largest = Max(largest, range.largest);
  }
  return range;
}

// Packs the n values (a multiple of 32), behind a barrier.
HEARTH_GPU void PackValues(const Block& block, const PackMemory& m, int n,
                           std::uint32_t* codes, PackedScale* scales) {
  ForItems(block, n / 4, [&](std::int64_t w) {
    float largest = 0.0f;
    bool nan = false;
    HEARTH_GPU_UNROLL
    for (int i = 0; i < 4; ++i) {
      const float v = m.values[4 * w + i];
      largest = Max(Abs(v), largest);
      nan = nan || v != v;
    }
    m.largest[w] = nan ? AsFloat(0x7fc00000u) : largest;
  });
  block.Sync();
  ForItems(block, n / 4, [&](std::int64_t w) {
    const PackRange range = RangeOf(m, static_cast<int>(w));
    const float inverse = range.tiny() ? 0.0f : Div(127.0f, range.largest);
    std::uint32_t word = 0;
    int sum = 0;
    HEARTH_GPU_UNROLL
    for (int i = 0; i < 4; ++i) {
      const float bounded =
          Min(Max(m.values[4 * w + i] * inverse, -127.0f), 127.0f);
      // Rounds; the low byte is the code.
      const std::uint32_t code = AsBits(bounded + 0x1.8p23f) & 0xffu;
      word |= code << (8 * i);
      sum += static_cast<std::int8_t>(code);
    }
    codes[w] = word;
    m.sums[w] = sum;
  });
  block.Sync();
  ForItems(block, n / 32, [&](std::int64_t g) {
    const PackRange range = RangeOf(m, static_cast<int>(8 * g));
    scales[g].scale = range.nan      ? AsFloat(0x7fc00000u)
                      : range.tiny() ? 0.0f
                                     : Div(range.largest, 127.0f);
    HEARTH_GPU_UNROLL
    for (int half = 0; half < 2; ++half) {
      int sum = 0;
      HEARTH_GPU_UNROLL
      for (int i = 0; i < 4; ++i) sum += m.sums[8 * g + 4 * half + i];
      scales[g].sums[half] = static_cast<std::int16_t>(sum);
    }
  });
}

struct PackArgs {
  const float* x;  // [n_rows], rows x_stride floats apart
  std::int64_t x_stride;
  std::int64_t n_in;    // a multiple of 32
  std::uint8_t* codes;  // [n_rows][n_in]
  PackedScale* scales;  // [n_rows][n_in / 32]
};
inline constexpr int kPackThreads = 256;
inline constexpr int kPackValues = 256;  // of a block
inline constexpr int kPackSharedBytes = PackFloats(kPackValues) * 4;

// Of a row's values from `first` on, which lie in shared memory, behind a
// barrier.
HEARTH_GPU void PackPiece(const Block& block, const PackMemory& m,
                          std::int64_t row, std::int64_t first, int n,
                          std::int64_t n_in, std::uint8_t* codes,
                          PackedScale* scales) {
  const std::int64_t at = row * n_in + first;
  PackValues(block, m, n, reinterpret_cast<std::uint32_t*>(codes + at),
             scales + at / 32);
}

// How many values a block of kPackValues has from `first` on.
HEARTH_GPU int PieceOf(std::int64_t n_in, std::int64_t first) {
  return n_in - first < kPackValues ? static_cast<int>(n_in - first)
                                    : kPackValues;
}

// grid: (n_in / kPackValues rounded up, n_rows). shared: kPackSharedBytes.
HEARTH_GPU void Pack(const Block& block, const PackArgs& a) {
  block.Await();
  const std::int64_t row = block.y();
  const std::int64_t first = std::int64_t{block.x()} * kPackValues;
  const int n = PieceOf(a.n_in, first);
  const PackMemory m(reinterpret_cast<float*>(block.shared()), kPackValues);
  ForItems(block, n, [&](std::int64_t i) {
    m.values[i] = a.x[row * a.x_stride + first + i];
  });
  block.Sync();
  PackPiece(block, m, row, first, n, a.n_in, a.codes, a.scales);
}

}  // namespace hearth::gpu
