// The one place that computes sizes and offsets inside a block.
//
//   block   := layer* ; KV layers in order
//   layer   := keys values ; each starts on 64 bytes
//   keys    := (key rows, their scales and zeros)* ; KV heads in order
//   values  := (value rows, their scales and zeros)*
// Rows, scales and zeros as tensor/kv_format.h has them; every layer has the
// heads, sizes and formats of its own, and a layer of keys alone has no values.
// A full block has stride = block_tokens and the spec's formats. The stored
// image of a partial block, and the concat reference mode, use stride = live
// tokens; when the spec is quantised, a partial block is fp32.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "cache/kv_spec.h"
#include "model/device_kv.h"

namespace hearth {

// One layer of a block; offsets are from the layer's start.
class KvLayerLayout {
 public:
  // Of `stride` tokens. REQUIRES: stride >= 1 and the layer's numbers positive
  // (value_dim may be 0).
  KvLayerLayout(const KvLayer& layer, int stride);

  int stride() const { return stride_; }
  KvFormat key_format() const { return key_format_; }
  KvFormat value_format() const { return value_format_; }
  std::size_t keys_bytes() const { return keys_bytes_; }
  std::size_t bytes() const { return bytes_; }
  std::size_t key_tile(int head) const {
    return static_cast<std::size_t>(head) * key_bytes_;
  }
  std::size_t key_params(int head) const {
    return key_tile(head) + key_row_bytes_;
  }
  std::size_t value_tile(int head) const {
    return keys_bytes_ + static_cast<std::size_t>(head) * value_bytes_;
  }
  std::size_t value_params(int head) const {
    return value_tile(head) + value_row_bytes_;
  }

  // One head's tile of a layer that starts at `layer`. Without values,
  // `values` is null.
  KvTile TileAt(const std::byte* layer, int head, int n_tokens) const;

 private:
  int stride_;
  KvFormat key_format_, value_format_;
  std::size_t key_row_bytes_, value_row_bytes_;  // one head's rows
  std::size_t key_bytes_, value_bytes_;          // with scales and zeros
  std::size_t keys_bytes_;  // all heads' keys, padded to 64
  std::size_t bytes_;       // keys and values, padded to 64
};

// What a block's bytes consist of, for those who need not know what they mean.
struct KvPart {
  // Part of the block format; never renumbered.
  enum class Kind : std::uint16_t {
    kKeys = 1,    // all key tiles of one layer
    kValues = 2,  // all value tiles of one layer
  };
  Kind kind;
  int layer;
  std::size_t offset, length;  // padding behind the tiles included
};

class KvLayout {
 public:
  // Of `stride` stored tokens: a full block, or a partial one.
  // REQUIRES: stride >= 1 and the spec's numbers positive.
  KvLayout(const KvSpec& spec, int stride);
  // Of a block that is being filled: room for block_tokens.
  static KvLayout Tail(const KvSpec& spec);

  int stride() const { return stride_; }
  int n_layers() const { return static_cast<int>(layers_.size()); }
  std::size_t block_bytes() const { return block_bytes_; }
  // One layer, and where it starts in the block.
  const KvLayerLayout& layer(int i) const {
    return layers_[static_cast<std::size_t>(i)].layout;
  }
  std::size_t offset(int layer) const {
    return layers_[static_cast<std::size_t>(layer)].offset;
  }

  // One head's tile of a block that starts at `block`.
  KvTile TileAt(const std::byte* block, int i, int head, int n_tokens) const {
    return layer(i).TileAt(block + offset(i), head, n_tokens);
  }

  // Where a device finds one layer's tiles.
  KvPlaceInBlock PlaceOf(int layer) const;

  // All bytes of a block, in order and without a gap.
  std::vector<KvPart> Parts() const;

 private:
  struct Place {
    KvLayerLayout layout;
    std::size_t offset;
  };
  KvLayout(const KvSpec& spec, int stride, bool as_floats);

  int stride_;
  std::vector<Place> layers_;
  std::size_t block_bytes_ = 0;
};

}  // namespace hearth
