// Activations made int8 for products with weights in blocks: the codes, scales
// and sums of generic/pack.inl.
#pragma once

#include "cuda/kernels/matrix.h"

namespace hearth::gpu {

struct PackArgs {
  const float* x;  // [n_rows], rows x_stride floats apart
  std::int64_t x_stride;
  std::int64_t n_in;    // a multiple of 32
  std::uint8_t* codes;  // [n_rows][n_in]
  PackedScale* scales;  // [n_rows][n_in / 32]
};
inline constexpr int kPackThreads = 64;

HEARTH_GPU void PackGroup(const float* x, std::uint32_t* codes,
                          PackedScale* scale) {
  float v[32];
  float largest = 0.0f;
  bool nan = false;
  HEARTH_GPU_UNROLL
  for (int i = 0; i < 32; ++i) {
    v[i] = x[i];
    largest = Max(Abs(v[i]), largest);
    nan = nan || v[i] != v[i];
  }
  const bool tiny = largest < 0x1p-100f;
  const float inverse = tiny ? 0.0f : Div(127.0f, largest);
  int sums[2] = {0, 0};
  HEARTH_GPU_UNROLL
  for (int w = 0; w < 8; ++w) {
    std::uint32_t word = 0;
    HEARTH_GPU_UNROLL
    for (int i = 0; i < 4; ++i) {
      const float bounded = Min(Max(v[4 * w + i] * inverse, -127.0f), 127.0f);
      // Rounds; the low byte is the code.
      const std::uint32_t code = AsBits(bounded + 0x1.8p23f) & 0xffu;
      word |= code << (8 * i);
      sums[w / 4] += static_cast<std::int8_t>(code);
    }
    codes[w] = word;
  }
  scale->scale = nan    ? AsFloat(0x7fc00000u)
                 : tiny ? 0.0f
                        : Div(largest, 127.0f);
  scale->sums[0] = static_cast<std::int16_t>(sums[0]);
  scale->sums[1] = static_cast<std::int16_t>(sums[1]);
}

// grid: (groups / kPackThreads rounded up, n_rows).
HEARTH_GPU void Pack(const Block& block, const PackArgs& a) {
  const std::int64_t n_groups = a.n_in / 32;
  const std::int64_t row = block.y();
  block.ForThreads([&](int thread) {
    const std::int64_t g = std::int64_t{block.x()} * kPackThreads + thread;
    if (g >= n_groups) return;
    PackGroup(a.x + row * a.x_stride + g * 32,
              reinterpret_cast<std::uint32_t*>(a.codes + row * a.n_in + g * 32),
              a.scales + row * n_groups + g);
  });
}

}  // namespace hearth::gpu
