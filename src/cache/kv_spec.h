// What a model's KV cache consists of: the shape that all sizes follow from.
#pragma once

#include <cstdint>

#include "base/hash.h"
#include "tensor/kv_format.h"

namespace hearth {

inline constexpr int kDefaultBlockTokens = 64;

struct KvSpec {
  int n_kv_layers = 0;  // layers that own keys and values
  int n_kv_heads = 0;   // never the query heads
  int head_dim = 0;     // of keys and of values
  KvFormat format = KvFormat::kF32;
  int block_tokens = kDefaultBlockTokens;  // a multiple of 16

  // Bytes that one token's keys and values take, over all layers.
  std::uint64_t bytes_per_token() const {
    return std::uint64_t{2} * static_cast<std::uint64_t>(n_kv_layers) *
           static_cast<std::uint64_t>(n_kv_heads) *
           static_cast<std::uint64_t>(head_dim) *
           static_cast<std::uint64_t>(BytesPerValue(format));
  }

  friend bool operator==(const KvSpec&, const KvSpec&) = default;
};

// Identity of the stored bytes' layout: format, shape, block_tokens and layout
// version. Two specs with one id have interchangeable blocks.
Digest FormatId(const KvSpec& spec);

}  // namespace hearth
