// The one place that computes sizes and offsets inside a block.
//
//   block   := layer* ; KV layers in order
//   layer   := key_tile* value_tile* ; one tile per KV head, heads in order
//   key     := [head_dim][stride] values of the spec's format
//   value   := [stride][head_dim]
// Every layer's keys and every layer's values start on 64 bytes. A full block
// has stride = block_tokens; the stored image of a partial block, and the
// concat reference mode, use the same layout with stride = live tokens.
#pragma once

#include <cstddef>
#include <vector>

#include "cache/kv_spec.h"

namespace hearth {

class KvLayout {
 public:
  // REQUIRES: stride >= 1 and the spec's numbers positive.
  KvLayout(const KvSpec& spec, int stride);

  int stride() const { return stride_; }
  std::size_t block_bytes() const { return n_kv_layers_ * layer_bytes_; }
  std::size_t layer_bytes() const { return layer_bytes_; }
  std::size_t layer_offset(int layer) const {
    return static_cast<std::size_t>(layer) * layer_bytes_;
  }
  // Offsets from the block's start.
  std::size_t key_tile(int layer, int head) const {
    return layer_offset(layer) + static_cast<std::size_t>(head) * tile_bytes_;
  }
  std::size_t value_tile(int layer, int head) const {
    return layer_offset(layer) + keys_bytes_ +
           static_cast<std::size_t>(head) * tile_bytes_;
  }
  std::size_t tile_bytes() const { return tile_bytes_; }

 private:
  int stride_;
  std::size_t n_kv_layers_;
  std::size_t tile_bytes_;   // one head's keys (or values)
  std::size_t keys_bytes_;   // all heads' keys of one layer, padded to 64
  std::size_t layer_bytes_;  // keys and values of one layer, padded to 64
};

}  // namespace hearth
