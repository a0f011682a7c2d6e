// Storage formats of cached keys and values, and the tile that holds the tokens
// of one block for one KV layer and one KV head.
//
// A tile holds up to `stride` tokens:
//   keys    [head_dim] rows of `stride` numbers, dimension-major: the scores of
//           many tokens come out of vertical multiply-adds, with no horizontal
//           sum
//   values  [stride] rows of head_dim numbers: the weighted sum is vertical too
// Keys are stored after RoPE.
//
// Quantised formats (KIVI, Liu et al. 2024): number = code * scale + zero with
// one float16 scale and zero for each row, so for keys per channel over the
// block's tokens and for values per token over the channels. They hold full
// blocks only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace hearth {

// Part of the format identity; never renumber.
enum class KvFormat : std::uint8_t {
  kF32 = 0,
  kF16 = 1,
  kBF16 = 2,
  kInt8 = 3,  // codes 0..255
  kInt4 = 4,  // codes 0..15, two in a byte, the even one low
};
inline constexpr int kKvFormats = 5;

std::string_view NameOf(KvFormat format);  // "fp32", ...

constexpr bool IsQuantised(KvFormat format) {
  return format == KvFormat::kInt8 || format == KvFormat::kInt4;
}

// Bytes of a row of n numbers. Nibbles come in whole groups of sixteen, so that
// a kernel may read all of the last one.
constexpr std::int64_t KvRowBytes(KvFormat format, std::int64_t n) {
  switch (format) {
    case KvFormat::kF32:
      return 4 * n;
    case KvFormat::kF16:
    case KvFormat::kBF16:
      return 2 * n;
    case KvFormat::kInt8:
      return n;
    case KvFormat::kInt4:
      return (n + 15) / 16 * 8;
  }
  return 0;
}

// Bytes of the scales and zeros of n_rows rows: float16 scale[n_rows], then
// float16 zero[n_rows].
constexpr std::int64_t KvParamBytes(KvFormat format, std::int64_t n_rows) {
  return IsQuantised(format) ? 4 * n_rows : 0;
}

// One tile as attention reads it.
struct KvTile {
  const std::byte* keys = nullptr;
  const std::byte* values = nullptr;
  KvFormat key_format = KvFormat::kF32;
  KvFormat value_format = KvFormat::kF32;
  const std::byte* key_params = nullptr;    // of head_dim rows
  const std::byte* value_params = nullptr;  // of stride rows
  int n_tokens = 0;                         // live tokens, <= stride
  int stride = 0;  // tokens in a key row; a multiple of 16 when quantised
  // Of the tile that is read after this one, to be fetched from memory
  // meanwhile; or null.
  const std::byte* next_keys = nullptr;
  const std::byte* next_values = nullptr;

  // `next` is read after this one. Without effect when it is laid out
  // otherwise.
  void Precede(const KvTile& next) {
    if (next.key_format != key_format || next.value_format != value_format ||
        next.stride != stride) {
      return;
    }
    next_keys = next.keys;
    next_values = next.values;
  }
};

}  // namespace hearth
