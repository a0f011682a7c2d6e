// The blocks of a sequence, oldest first, and what has been let go of: blocks
// that no later position looks at, and in blocks that some layers still need,
// the memory of the layers that do not.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "cache/kv_layout.h"
#include "cache/kv_spec.h"
#include "cache/pool/block_pool.h"

namespace hearth {

class BlockTable {
 public:
  BlockTable(std::shared_ptr<BlockPool> pool, const KvSpec& spec,
             KvRetention retention);
  ~BlockTable() { pool_->Leave(this); }
  BlockTable(const BlockTable&) = delete;
  BlockTable& operator=(const BlockTable&) = delete;
  // Holds what `other`, of the same pool, holds.
  void CopyFrom(const BlockTable& other);

  int size() const { return static_cast<int>(blocks_.size()); }
  // Blocks that are still held.
  int n_held() const;
  // Null when all of it was let go of.
  const BlockPtr& At(int block) const {
    return blocks_[static_cast<std::size_t>(block)].get();
  }
  void Push(BlockPtr block) { blocks_.emplace_back(std::move(block)); }
  void Replace(int block, BlockPtr with) {
    blocks_[static_cast<std::size_t>(block)] = HeldBlock(std::move(with));
  }
  void Truncate(int n_blocks);

  // Lets go of what positions from `n_tokens` on do not look at, of the first
  // `n_blocks` blocks. A block that someone else holds too (a fork, a save in
  // progress) keeps the layers that only windows are done with until a later
  // call finds it unshared.
  void Release(int n_tokens, int n_blocks);
  // Whether position `n_tokens` finds all that it looks at.
  bool Serves(int n_tokens) const;
  // Whether every layer of the block is there.
  bool IsWhole(int block) const;

  // Tokens of one layer that position `n_tokens` looks at.
  int SeenTokens(int layer, int n_tokens) const;
  // Bytes of the blocks that are held.
  struct Held {
    std::size_t anonymous = 0, mapped = 0;
    std::size_t shared = 0;  // of both: that other tables hold, too
  };
  Held HeldBytes() const;

 private:
  int Window(int layer) const {
    return retention_.windows.empty()
               ? 0
               : retention_.windows[static_cast<std::size_t>(layer)];
  }
  int FirstNeeded(int layer, int n_tokens) const;
  bool IsNews(int block, const std::vector<int>& first_needed) const;
  void DiscardLayers(int block, const std::vector<int>& first_needed);

  const std::shared_ptr<BlockPool> pool_;
  KvLayout layout_;
  int block_tokens_, n_layers_;
  KvRetention retention_;
  int n_sink_blocks_;
  bool windowed_;
  std::vector<HeldBlock> blocks_;
  // For each layer: blocks [n_sink_blocks_, released) are let go of.
  std::vector<int> released_;
};

}  // namespace hearth
