// What a model's KV cache consists of: the shape that all sizes follow from.
#pragma once

#include <cstdint>
#include <vector>

#include "base/hash.h"
#include "tensor/kv_format.h"

namespace hearth {

inline constexpr int kDefaultBlockTokens = 64;

struct KvSpec {
  int n_kv_layers = 0;  // layers that own keys and values
  int n_kv_heads = 0;   // never the query heads
  int head_dim = 0;     // of keys and of values
  // Of full blocks. When one of the two is quantised, the tokens of a block
  // that is not full yet are kept in fp32: KIVI's full-precision residual.
  KvFormat key_format = KvFormat::kF32;
  KvFormat value_format = KvFormat::kF32;
  int block_tokens = kDefaultBlockTokens;  // a multiple of 16

  void SetFormat(KvFormat both) { key_format = value_format = both; }
  bool quantised() const {
    return IsQuantised(key_format) || IsQuantised(value_format);
  }

  // Bytes of a full block without padding, scales included.
  std::uint64_t full_block_bytes() const {
    const std::int64_t keys = head_dim * KvRowBytes(key_format, block_tokens) +
                              KvParamBytes(key_format, head_dim);
    const std::int64_t values =
        block_tokens * KvRowBytes(value_format, head_dim) +
        KvParamBytes(value_format, block_tokens);
    return tiles() * static_cast<std::uint64_t>(keys + values);
  }
  // Bytes that one token's keys and values take in a full block, over all
  // layers; rounded up.
  std::uint64_t bytes_per_token() const {
    const auto n = static_cast<std::uint64_t>(block_tokens);
    return (full_block_bytes() + n - 1) / n;
  }
  // The same for a token of a block that is not full.
  std::uint64_t tail_bytes_per_token() const {
    return quantised() ? tiles() * static_cast<std::uint64_t>(8 * head_dim)
                       : bytes_per_token();
  }
  // Bytes that `n` tokens take, over all layers.
  std::uint64_t BytesOf(int n_tokens) const {
    const int n_full = n_tokens / block_tokens;
    return static_cast<std::uint64_t>(n_full) * full_block_bytes() +
           static_cast<std::uint64_t>(n_tokens % block_tokens) *
               tail_bytes_per_token();
  }

  friend bool operator==(const KvSpec&, const KvSpec&) = default;

 private:
  std::uint64_t tiles() const {
    return static_cast<std::uint64_t>(n_kv_layers) *
           static_cast<std::uint64_t>(n_kv_heads);
  }
};

// Which tokens later positions still look at. What they do not, a sequence lets
// go of.
struct KvRetention {
  // For each KV layer: position p sees j with p - j < window; 0: all. Empty:
  // all, in every layer.
  std::vector<int> windows;
  int sink_tokens = 0;  // these first ones are kept in every layer
};

// Identity of the stored bytes' layout: formats, shape, block_tokens and layout
// version. Two specs with one id have interchangeable blocks.
Digest FormatId(const KvSpec& spec);

}  // namespace hearth
