// The blocks of a sequence, oldest first, and what has been let go of: blocks
// that no later position looks at, and in blocks that some layers still need,
// the memory of the layers that do not.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "cache/block_pool.h"
#include "cache/kv_layout.h"
#include "cache/kv_spec.h"

namespace hearth {

class BlockTable {
 public:
  BlockTable(const KvSpec& spec, KvRetention retention);

  int size() const { return static_cast<int>(blocks_.size()); }
  // Null when all of it was let go of.
  const std::shared_ptr<Block>& At(int block) const {
    return blocks_[static_cast<std::size_t>(block)];
  }
  void Push(std::shared_ptr<Block> block) {
    blocks_.push_back(std::move(block));
  }
  void Replace(int block, std::shared_ptr<Block> with) {
    blocks_[static_cast<std::size_t>(block)] = std::move(with);
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
  // Bytes of the blocks that are held, split by kind.
  std::size_t HeldBytes(bool mapped) const;

 private:
  int Window(int layer) const {
    return retention_.windows.empty()
               ? 0
               : retention_.windows[static_cast<std::size_t>(layer)];
  }
  int FirstNeeded(int layer, int n_tokens) const;
  void DiscardLayers(int block, const std::vector<int>& first_needed);

  KvLayout layout_;
  int block_tokens_, n_layers_;
  KvRetention retention_;
  int n_sink_blocks_;
  bool windowed_;
  std::vector<std::shared_ptr<Block>> blocks_;
  // For each layer: blocks [n_sink_blocks_, released) are let go of.
  std::vector<int> released_;
};

}  // namespace hearth
