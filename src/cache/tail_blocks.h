// The blocks of a quantised sequence that are not quantised yet, in fp32: the
// tail, and while a step runs the blocks that it fills.
#pragma once

#include <memory>
#include <vector>

#include "cache/kv_layout.h"
#include "cache/kv_spec.h"
#include "cache/pool/block_pool.h"

namespace hearth {

class TailBlocks {
 public:
  // Blocks are taken from `pool`; of a plain spec, none are.
  TailBlocks(std::shared_ptr<BlockPool> pool, const KvSpec& spec,
             const KvRetention& retention);

  // A step of n tokens behind n_tokens begins. kResourceFull changes nothing.
  Result<void> Begin(BlockPromise& promise, int n_tokens, int n);
  // Stores the step's keys and values of one head (HostKvPort::WriteHead).
  void WriteHead(int kv_layer, int kv_head, const float* keys,
                 const float* values, std::int64_t row_stride);
  // Quantises one head of a block whose last token this step wrote.
  void Seal(int kv_layer, int kv_head, int block, const KvLayout& sealed,
            Block& to) const;
  // A block that the step fills, or the tail. Blocks that are neither the tail
  // before nor the tail after the step share one layer's memory: of these,
  // only the layer last written can be read, and those that are read later.
  KvTile TileOf(int kv_layer, int kv_head, int block, int n_tokens) const;
  // The step is over: what it filled is let go of.
  void Commit();
  // The step was for nothing: the tail is as before Begin.
  void Abandon();
  void Clear();

  // A stored tail of n tokens becomes the tail behind n_tokens.
  Result<void> Restore(BlockPromise& promise, int n_tokens,
                       const KvLayout& stored, ByteSpan payload, int n);
  // Copies the tail's first n tokens out. kIo: a device that has them failed.
  Result<void> CopyTo(const KvLayout& to, std::byte* block, int n) const;
  // Becomes a copy of the tail of another sequence, of n_tokens, in memory of
  // its own.
  Result<void> CopyFrom(BlockPromise& promise, const TailBlocks& other,
                        int n_tokens);

  // The tail before or after the step, for a device; none for blocks between.
  DeviceBlock ForDevice(int block);
  const KvLayout& layout() const { return layout_; }

  std::uint64_t held_bytes() const;

 private:
  std::byte* Bytes(int kv_layer, int block) const;

  KvSpec spec_;
  KvLayout layout_;  // fp32, stride = block_tokens
  std::shared_ptr<BlockPool> pool_;
  BlockPtr tail_;  // block tail_index_; null: no live tail
  int tail_index_ = 0;

  // The step.
  BlockPtr next_tail_;
  int next_index_ = 0;
  int first_position_ = 0, n_new_ = 0;
  int first_inner_ = 0;      // blocks that begin and end within the step
  std::size_t inner_bytes_;  // of what one of them has at a time
  // Where a layer is in that: a place of its own when it is read later.
  std::vector<std::size_t> inner_offsets_;
  std::vector<std::byte> inner_;
};

}  // namespace hearth
