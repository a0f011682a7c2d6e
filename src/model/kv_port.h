// What the forward pass needs from a sequence's KV cache, and nothing more: the
// model knows neither blocks' memory nor files nor what is done with old
// tokens.
//
// One forward step of n tokens is
//   Extend(n); for every KV layer: BeginLayer, then the device writes the new
//   keys and values and reads what is there; at last Commit() when the step has
//   succeeded, Abandon() when it has not.
#pragma once

#include <cstdint>

#include "hearth/result.h"
#include "tensor/kv_format.h"

namespace hearth {

class DeviceKvPort;
class HostKvPort;
class StatePort;

class KvPort {
 public:
  virtual ~KvPort() = default;

  // Tokens that every layer holds. A new token's position is n_tokens().
  virtual int n_tokens() const = 0;
  virtual int block_tokens() const = 0;
  // Whether a block that is full is quantised: then a token sees its own block
  // as it was written and earlier ones quantised, however the sequence was cut
  // into steps.
  virtual bool quantises() const = 0;

  // Makes room for n more tokens. kResourceFull when there is none; then
  // nothing has changed.
  virtual Result<void> Extend(int n) = 0;
  // Called once for each layer before its keys and values are written.
  virtual void BeginLayer(int kv_layer) = 0;
  // The n tokens are part of the sequence now.
  virtual void Commit() = 0;
  // The n tokens are not: the sequence is as it was before Extend, whatever
  // was written since.
  virtual void Abandon() = 0;

  // The same port where the CPU can reach keys and values, and where a device
  // can take their blocks into its own memory (model/device_kv.h); null where
  // it cannot. A step uses one of the two.
  virtual HostKvPort* host() { return nullptr; }
  virtual DeviceKvPort* device() { return nullptr; }
};

// Keys and values in the CPU's memory.
//
// Threads  WriteHead, Tile and OwnTile may be called for different heads at
//          once; the rest by one thread at a time.
class HostKvPort : public KvPort {
 public:
  HostKvPort* host() final { return this; }

  // The sequence's states; null when its model has none.
  virtual StatePort* states() { return nullptr; }

  // Stores the n new tokens' keys (after RoPE) and values of one head. Row t
  // is at keys + t * row_stride, as many floats as a head of the layer has.
  virtual void WriteHead(int kv_layer, int kv_head, const float* keys,
                         const float* values, std::int64_t row_stride) = 0;
  // Tokens [block * block_tokens, ...) of one head, the new ones included.
  // Valid until the next BeginLayer or Extend.
  virtual KvTile Tile(int kv_layer, int kv_head, int block) const = 0;
  // The same as the block's own tokens see it. REQUIRES: the block holds a
  // token of this step.
  virtual KvTile OwnTile(int kv_layer, int kv_head, int block) const = 0;
};

}  // namespace hearth
