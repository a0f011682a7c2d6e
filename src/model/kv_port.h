// What the forward pass needs from a KV cache, and nothing more: the model
// knows neither blocks' memory nor files nor formats beyond the tile.
//
// One forward step of n tokens is
//   Extend(n); for every KV layer: BeginLayer, WriteHead for every head, Tile
//   for every block and head; Commit(n).
// Threads  WriteHead and Tile may be called for different heads at once; the
//          rest by one thread at a time.
#pragma once

#include <span>

#include "hearth/result.h"
#include "tensor/kv_format.h"

namespace hearth {

class KvPort {
 public:
  virtual ~KvPort() = default;

  // Tokens that every layer holds. A new token's position is n_tokens().
  virtual int n_tokens() const = 0;
  virtual int block_tokens() const = 0;
  virtual KvFormat format() const = 0;

  // Makes room for n more tokens. kResourceFull when there is none; then
  // nothing has changed.
  virtual Result<void> Extend(int n) = 0;
  // Called once for each layer before its WriteHead calls.
  virtual void BeginLayer(int kv_layer) = 0;
  // Stores the n new tokens' keys (after RoPE) and values of one head. Row t
  // is at keys + t * row_stride, head_dim floats.
  virtual void WriteHead(int kv_layer, int kv_head, const float* keys,
                         const float* values, std::int64_t row_stride) = 0;
  // Tokens [block * block_tokens, ...) of one head, the new ones included.
  // Valid until the next Extend.
  virtual KvTile Tile(int kv_layer, int kv_head, int block) const = 0;
  // The n tokens are part of the sequence now.
  virtual void Commit() = 0;
};

}  // namespace hearth
