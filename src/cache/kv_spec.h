// What a sequence of a model carries: the shapes that all sizes follow from.
// Two kinds of parts: keys and values, of which every token has its own, and
// states, of which a sequence has one, at its newest position.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/hash.h"
#include "model/state_shape.h"
#include "tensor/kv_format.h"

namespace hearth {

inline constexpr int kDefaultBlockTokens = 64;

// What one layer keeps of every token.
struct KvLayer {
  int n_heads = 0;    // KV heads, never the query heads
  int key_dim = 0;    // numbers in one head's key
  int value_dim = 0;  // numbers in its value; 0: keys without values (MLA)
  // Of full blocks.
  KvFormat key_format = KvFormat::kF32;
  KvFormat value_format = KvFormat::kF32;

  bool quantised() const {
    return IsQuantised(key_format) || IsQuantised(value_format);
  }
  // Bytes in a full block of `n` tokens without padding, scales included.
  std::uint64_t full_bytes(int n) const;
  // Bytes of one token in fp32.
  std::uint64_t float_bytes() const {
    return static_cast<std::uint64_t>(n_heads) *
           static_cast<std::uint64_t>(4 * (key_dim + value_dim));
  }

  friend bool operator==(const KvLayer&, const KvLayer&) = default;
};

// A spec whose layers are all alike, as most models have it.
struct UniformKv {
  int n_layers = 0;
  int n_heads = 0;
  int head_dim = 0;  // of keys and of values
  KvFormat key_format = KvFormat::kF32;
  KvFormat value_format = KvFormat::kF32;
  int block_tokens = kDefaultBlockTokens;
};

struct KvSpec {
  std::vector<KvLayer> layers;     // that own keys, in the model's order
  std::vector<StateShape> states;  // in the model's order; most models: none
  int block_tokens = kDefaultBlockTokens;  // a multiple of 16

  KvSpec() = default;
  KvSpec(const UniformKv& all);
  // What all layers have in common; nothing when they differ, when keys and
  // values do in size, or when there are states.
  std::optional<UniformKv> uniform() const;

  int n_layers() const { return static_cast<int>(layers.size()); }
  const KvLayer& layer(int i) const {
    return layers[static_cast<std::size_t>(i)];
  }
  void SetFormats(KvFormat keys, KvFormat values);
  void SetFormat(KvFormat both) { SetFormats(both, both); }
  // When a layer is quantised, the tokens of a block that is not full yet are
  // kept in fp32, in all layers: KIVI's full-precision residual.
  bool quantised() const;

  // Bytes of a full block without padding, scales included.
  std::uint64_t full_block_bytes() const;
  // Bytes that one token's keys and values take in a full block, over all
  // layers; rounded up.
  std::uint64_t bytes_per_token() const;
  // The same for a token of a block that is not full.
  std::uint64_t tail_bytes_per_token() const;
  // Bytes that `n` tokens take, over all layers.
  std::uint64_t BytesOf(int n_tokens) const;

  friend bool operator==(const KvSpec&, const KvSpec&) = default;
};

// Which tokens later positions still look at. What they do not, a sequence lets
// go of.
struct KvRetention {
  // For each KV layer: position p sees j with p - j < window; 0: all. Empty:
  // all, in every layer.
  std::vector<int> windows;
  int sink_tokens = 0;  // these first ones are kept in every layer
  // KV layers that a layer behind the next owner attends to, too, so that what
  // a step writes there is read until its end. Empty: none.
  std::vector<bool> read_later = {};

  bool windowed() const;
};

// Identity of the stored bytes' layout: formats, shapes, block_tokens and
// layout version. Two specs with one id have interchangeable blocks.
Digest FormatId(const KvSpec& spec);

}  // namespace hearth
