// Inputs and comparisons that the kernel tests share.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "kernels/kernels.h"

namespace hearth::kernels_testing {

inline std::vector<float> RandomFloats(std::size_t n, unsigned seed,
                                       float scale = 1.0f) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal(0.0f, scale);
  std::vector<float> values(n);
  for (float& value : values) value = normal(rng);
  return values;
}

inline std::vector<std::byte> RandomBytes(std::size_t n, unsigned seed) {
  std::mt19937 rng(seed);
  std::vector<std::byte> bytes(n);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(rng());
  return bytes;
}

// Exactly `size` bytes at an address that is `misalign` past a multiple of 64,
// allocated so that the address sanitizer sees a read beyond the end.
class Buffer {
 public:
  explicit Buffer(std::size_t size, std::size_t misalign = 0)
      : memory_(std::aligned_alloc(64, (size + misalign + 63) / 64 * 64 + 64)),
        data_(static_cast<std::byte*>(memory_) + misalign),
        size_(size) {}
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { std::free(memory_); }

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  float* floats() { return reinterpret_cast<float*>(data_); }
  std::size_t size() const { return size_; }

 private:
  void* memory_;
  std::byte* data_;
  std::size_t size_;
};

// Equal bits; two NaNs are equal whatever their payload.
inline bool SameBits(std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] != a[i] && b[i] != b[i]) continue;
    if (std::bit_cast<std::uint32_t>(a[i]) !=
        std::bit_cast<std::uint32_t>(b[i])) {
      return false;
    }
  }
  return true;
}

inline std::string FirstDifference(std::span<const float> a,
                                   std::span<const float> b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!SameBits(a.subspan(i, 1), b.subspan(i, 1))) {
      return "index " + std::to_string(i) + ": " + std::to_string(a[i]) +
             " and " + std::to_string(b[i]);
    }
  }
  return "equal";
}

// A weight matrix with its bytes, unaligned as in a mapped file.
struct TestWeights {
  std::vector<std::byte> data;
  std::vector<std::byte> scales;
  WeightMatrix matrix;
};

inline F16 RandomScale(std::mt19937& rng) {
  std::uniform_real_distribution<float> uniform(-0.02f, 0.02f);
  return ToF16(uniform(rng));
}

inline void FillFloats(DType dtype, std::size_t n, std::mt19937& rng,
                       std::byte* out) {
  std::normal_distribution<float> normal(0.0f, 0.05f);
  for (std::size_t i = 0; i < n; ++i) {
    const float value = normal(rng);
    if (dtype == DType::kF32) StoreLe(out + 4 * i, value);
    if (dtype == DType::kF16) StoreLe(out + 2 * i, ToF16(value).bits);
    if (dtype == DType::kBF16) StoreLe(out + 2 * i, ToBF16(value).bits);
  }
}

// Where the f16 scales and minimums of a block lie; MXFP4 has none, IQ1_M's is
// in pieces.
inline std::vector<std::size_t> ScalePlaces(DType dtype) {
  switch (dtype) {
    case DType::kQ4_1:
    case DType::kQ5_1:
    case DType::kQ4_K:
    case DType::kQ5_K:
      return {0, 2};
    case DType::kQ2_K:
      return {80, 82};
    case DType::kQ3_K:
      return {108};
    case DType::kQ6_K:
      return {208};
    case DType::kTQ1_0:
      return {52};
    case DType::kTQ2_0:
      return {64};
    case DType::kMXFP4:
    case DType::kIQ1_M:
      return {};
    default:
      return {0};
  }
}

// Puts scales of a sane size into a block of random bytes.
inline void FillScales(DType dtype, std::mt19937& rng, std::byte* block) {
  for (const std::size_t place : ScalePlaces(dtype)) {
    StoreLe(block + place, RandomScale(rng).bits);
  }
  if (dtype == DType::kMXFP4) {
    block[0] = static_cast<std::byte>(115 + rng() % 8);
  }
  if (dtype == DType::kIQ1_M) {  // in the upper quarters of four numbers
    const unsigned bits = RandomScale(rng).bits;
    for (std::size_t i = 0; i < 4; ++i) {
      block[49 + 2 * i] &= std::byte{0x0f};
      block[49 + 2 * i] |= static_cast<std::byte>((bits >> (4 * i) & 15) << 4);
    }
  }
}

inline TestWeights MakeWeights(DType dtype, WeightLayout layout,
                               std::int64_t n_out, std::int64_t n_in,
                               unsigned seed, std::size_t misalign = 2) {
  std::mt19937 rng(seed);
  const DTypeInfo& info = InfoOf(dtype);
  const auto n = static_cast<std::size_t>(n_out * n_in);
  const auto block = static_cast<std::size_t>(info.block_elements);
  const std::size_t n_blocks = (n + block - 1) / block;
  const auto block_bytes = static_cast<std::size_t>(info.block_bytes);
  TestWeights w;
  w.data = RandomBytes(misalign + n_blocks * block_bytes, seed + 1);
  std::byte* data = w.data.data() + misalign;
  if (block == 1) FillFloats(dtype, n, rng, data);
  if (IsBlockQuantised(dtype)) {
    for (std::size_t b = 0; b < n_blocks; ++b) {
      FillScales(dtype, rng, data + b * block_bytes);
    }
  }
  if (dtype == DType::kTgInt4) {
    w.scales.resize(n_blocks * 2);
    for (std::size_t b = 0; b < n_blocks; ++b) {
      StoreLe(w.scales.data() + 2 * b, RandomScale(rng).bits);
    }
  }
  w.matrix = {dtype, layout, n_out, n_in, data, w.scales.data()};
  return w;
}

struct MatmulCall {
  int n_rows;
  std::int64_t n_begin = 0;
  std::int64_t n_end = -1;  // all
  const float* bias = nullptr;
};

// x: [n_rows][n_in]; returns y [n_rows][n_out], NaN where nothing was written.
inline std::vector<float> RunMatmul(const Kernels& kernels,
                                    const WeightMatrix& w,
                                    std::span<const float> x, MatmulCall call) {
  const std::size_t row_bytes = kernels.packed_row_bytes(w.dtype, w.n_in);
  const auto n_rows = static_cast<std::size_t>(call.n_rows);
  Buffer packed(row_bytes * n_rows);
  for (std::size_t r = 0; r < n_rows; ++r) {
    kernels.pack_row(w.dtype, x.data() + r * static_cast<std::size_t>(w.n_in),
                     w.n_in, packed.data() + r * row_bytes);
  }
  Buffer scratch(kernels.matmul_scratch_bytes(w, call.n_rows));
  std::vector<float> y(n_rows * static_cast<std::size_t>(w.n_out),
                       std::numeric_limits<float>::quiet_NaN());
  const std::int64_t n_end = call.n_end < 0 ? w.n_out : call.n_end;
  kernels.matmul(w, packed.data(), call.n_rows, call.n_begin, n_end, call.bias,
                 y.data(), w.n_out, scratch.data());
  return y;
}

}  // namespace hearth::kernels_testing
