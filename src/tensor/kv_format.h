// Storage formats of cached keys and values, and the tile that holds the tokens
// of one block for one KV layer and one KV head.
//
// A tile holds up to `stride` tokens:
//   keys    [head_dim][stride], dimension-major: the scores of many tokens come
//           out of vertical multiply-adds, with no horizontal sum
//   values  [stride][head_dim], token-major: the weighted sum is vertical too
// Keys are stored after RoPE.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace hearth {

// Part of the format identity; never renumber.
enum class KvFormat : std::uint8_t {
  kF32 = 0,
  kF16 = 1,
  kBF16 = 2,
};

std::string_view NameOf(KvFormat format);                    // "fp32", ...
std::optional<KvFormat> KvFormatNamed(std::string_view name);

// Bytes of one stored number.
constexpr int BytesPerValue(KvFormat format) {
  return format == KvFormat::kF32 ? 4 : 2;
}

// One tile as attention reads it.
struct KvTile {
  const std::byte* keys = nullptr;    // [head_dim][stride]
  const std::byte* values = nullptr;  // [stride][head_dim]
  int n_tokens = 0;                   // live tokens, <= stride
  int stride = 0;                     // tokens from one key row to the next
};

}  // namespace hearth
