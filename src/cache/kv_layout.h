// The one place that computes sizes and offsets inside a block.
//
//   block   := layer* ; KV layers in order
//   layer   := keys values ; each starts on 64 bytes
//   keys    := (key rows, their scales and zeros)* ; KV heads in order
//   values  := (value rows, their scales and zeros)*
// Rows, scales and zeros as tensor/kv_format.h has them. A full block has
// stride = block_tokens and the spec's formats. The stored image of a partial
// block, and the concat reference mode, use stride = live tokens; when the spec
// is quantised, a partial block is fp32.
#pragma once

#include <cstddef>
#include <vector>

#include "cache/kv_spec.h"

namespace hearth {

class KvLayout {
 public:
  // Of `stride` stored tokens: a full block, or a partial one.
  // REQUIRES: stride >= 1 and the spec's numbers positive.
  KvLayout(const KvSpec& spec, int stride);
  // Of a block that is being filled: room for block_tokens.
  static KvLayout Tail(const KvSpec& spec);

  int stride() const { return stride_; }
  KvFormat key_format() const { return key_format_; }
  KvFormat value_format() const { return value_format_; }
  std::size_t block_bytes() const { return n_kv_layers_ * layer_bytes_; }
  std::size_t layer_bytes() const { return layer_bytes_; }
  std::size_t layer_offset(int layer) const {
    return static_cast<std::size_t>(layer) * layer_bytes_;
  }
  // Offsets from the block's start.
  std::size_t key_tile(int layer, int head) const {
    return layer_offset(layer) + static_cast<std::size_t>(head) * key_bytes_;
  }
  std::size_t key_params(int layer, int head) const {
    return key_tile(layer, head) + key_row_bytes_;
  }
  std::size_t value_tile(int layer, int head) const {
    return layer_offset(layer) + keys_bytes_ +
           static_cast<std::size_t>(head) * value_bytes_;
  }
  std::size_t value_params(int layer, int head) const {
    return value_tile(layer, head) + value_row_bytes_;
  }

  // One head's tile of a block that starts at `block`.
  KvTile TileAt(const std::byte* block, int layer, int head,
                int n_tokens) const;

 private:
  KvLayout(const KvSpec& spec, int stride, KvFormat key_format,
           KvFormat value_format);

  int stride_;
  KvFormat key_format_, value_format_;
  std::size_t n_kv_layers_;
  std::size_t key_row_bytes_, value_row_bytes_;  // one head's rows
  std::size_t key_bytes_, value_bytes_;          // with scales and zeros
  std::size_t keys_bytes_;   // all heads' keys of one layer, padded to 64
  std::size_t layer_bytes_;  // keys and values of one layer, padded to 64
};

}  // namespace hearth
