// Keys and values that tell whose they are, for tests of sequences: each number
// is a function of its token's tag, layer, head and channel.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "cache/kv_sequence.h"

namespace hearth {

inline float KeyOf(int tag, int layer, int head, int d) {
  return static_cast<float>(tag * 1000 + layer * 100 + head * 10 + d);
}
inline float ValueOf(int tag, int layer, int head, int d) {
  return -KeyOf(tag, layer, head, d);
}

// Writes what Extend made room for.
inline void WriteTags(KvSequence& seq, const std::vector<int>& tags) {
  const KvSpec& spec = seq.spec();
  for (int layer = 0; layer < spec.n_layers(); ++layer) {
    const KvLayer& shape = spec.layer(layer);
    const int row = std::max(shape.key_dim, shape.value_dim);
    seq.BeginLayer(layer);
    for (int head = 0; head < shape.n_heads; ++head) {
      std::vector<float> k, v;
      for (const int tag : tags) {
        for (int d = 0; d < row; ++d) {
          k.push_back(KeyOf(tag, layer, head, d));
          v.push_back(ValueOf(tag, layer, head, d));
        }
      }
      seq.WriteHead(layer, head, k.data(),
                    shape.value_dim == 0 ? nullptr : v.data(), row);
    }
  }
}

// Appends tokens with the given tags in one step.
inline Result<void> Append(KvSequence& seq, const std::vector<int>& tags) {
  HEARTH_TRY(seq.Extend(static_cast<int>(tags.size())));
  WriteTags(seq, tags);
  seq.Commit();
  return {};
}

inline float At(const std::byte* tile, std::size_t index) {
  return LoadLe<float>(tile + index * sizeof(float));
}

// Every number of one token is the one that its tag implies. REQUIRES: fp32.
inline void ExpectHoldsToken(const KvSequence& seq, int layer, int t, int tag) {
  const KvSpec& spec = seq.spec();
  const KvLayer& shape = spec.layer(layer);
  for (int head = 0; head < shape.n_heads; ++head) {
    const KvTile tile = seq.Tile(layer, head, t / spec.block_tokens);
    const int slot = t % spec.block_tokens;
    ASSERT_LT(slot, tile.n_tokens);
    for (int d = 0; d < shape.key_dim; ++d) {
      ASSERT_EQ(At(tile.keys, static_cast<std::size_t>(d * tile.stride + slot)),
                KeyOf(tag, layer, head, d));
    }
    ASSERT_EQ(tile.values == nullptr, shape.value_dim == 0);
    for (int d = 0; d < shape.value_dim; ++d) {
      ASSERT_EQ(
          At(tile.values, static_cast<std::size_t>(slot * shape.value_dim + d)),
          ValueOf(tag, layer, head, d));
    }
  }
}

inline void ExpectHolds(const KvSequence& seq, const std::vector<int>& tags) {
  ASSERT_EQ(seq.n_tokens(), static_cast<int>(tags.size()));
  for (int layer = 0; layer < seq.spec().n_layers(); ++layer) {
    for (int t = 0; t < seq.n_tokens(); ++t) {
      ExpectHoldsToken(seq, layer, t, tags[static_cast<std::size_t>(t)]);
    }
  }
}

inline std::vector<int> Range(int begin, int end) {
  std::vector<int> tags;
  for (int i = begin; i < end; ++i) tags.push_back(i);
  return tags;
}

}  // namespace hearth
