// What the forward pass needs from a KV cache, and nothing more: the model
// knows neither blocks' memory nor files nor what is done with old tokens.
//
// One forward step of n tokens is
//   Extend(n); for every KV layer: BeginLayer, WriteHead for every head, Tile
//   and OwnTile for every block and head that is looked at; Commit().
// Threads  WriteHead, Tile and OwnTile may be called for different heads at
//          once; the rest by one thread at a time.
#pragma once

#include <cstdint>

#include "hearth/result.h"
#include "tensor/kv_format.h"

namespace hearth {

class KvPort {
 public:
  virtual ~KvPort() = default;

  // Tokens that every layer holds. A new token's position is n_tokens().
  virtual int n_tokens() const = 0;
  virtual int block_tokens() const = 0;
  // Whether a block that is full is quantised: then a token sees its own block
  // as it was written (OwnTile) and earlier ones quantised (Tile), however the
  // sequence was cut into steps.
  virtual bool quantises() const = 0;

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
  // Valid until the next BeginLayer or Extend.
  virtual KvTile Tile(int kv_layer, int kv_head, int block) const = 0;
  // The same as the block's own tokens see it. REQUIRES: the block holds a
  // token of this step.
  virtual KvTile OwnTile(int kv_layer, int kv_head, int block) const = 0;
  // The n tokens are part of the sequence now.
  virtual void Commit() = 0;
};

}  // namespace hearth
