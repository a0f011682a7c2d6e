// Whether a pool's memory, tables and index agree.
#include <map>
#include <string>
#include <vector>

#include "cache/block_table.h"
#include "cache/pool/block_pool.h"

namespace hearth {

Result<void> BlockPool::CheckIntegrity() const {
  std::vector<BlockPtr> held;
  const MutexLock lock(mutex_);
  std::vector<const std::byte*> blocks, tails;
  std::uint64_t mapped = 0, copied = 0, discarded = 0;
  for (const Block* block : live_) {
    discarded += block->discarded_bytes_;
    if (block->home_ == Block::Home::kPool) blocks.push_back(block->bytes_);
    if (block->home_ == Block::Home::kTail) tails.push_back(block->bytes_);
    if (block->home_ == Block::Home::kMapped) mapped += block->size_;
    if (block->home_ == Block::Home::kCopied) copied += block->size_;
  }
  if (mapped != mapped_bytes_ || copied != copied_bytes_ ||
      discarded != discarded_bytes_) {
    return {Code::kCorrupt, "bytes are counted wrongly"};
  }
  HEARTH_TRY(blocks_.CheckIntegrity(blocks));
  if (tails_.has_value()) HEARTH_TRY(tails_->CheckIntegrity(tails));
  if (options_.bytes_max > 0 &&
      blocks_.committed_bytes() - discarded_bytes_ > options_.bytes_max) {
    return {Code::kCorrupt, "more memory is in use than there may be"};
  }
  HEARTH_TRY(CheckTables());
  return CheckIndex(held);
}

Result<void> BlockPool::CheckTables() const {
  std::map<const Block*, int> holders;
  for (const BlockTable* table : tables_) {
    for (int i = 0; i < table->size(); ++i) {
      const Block* block = table->At(i).get();
      if (block == nullptr) continue;
      if (!live_.contains(block)) {
        return {Code::kCorrupt, "a table holds a block of another pool"};
      }
      ++holders[block];
    }
  }
  for (const Block* block : live_) {
    const auto held = holders.find(block);
    if (block->n_tables() != (held == holders.end() ? 0 : held->second)) {
      return {Code::kCorrupt, "a block's tables are counted wrongly"};
    }
  }
  return {};
}

Result<void> BlockPool::CheckIndex(std::vector<BlockPtr>& held) const {
  for (const auto& [id, entry] : index_) {
    const BlockPtr& block = held.emplace_back(entry.block.lock());
    if (block == nullptr || block.get() != entry.address ||
        !live_.contains(block.get())) {
      return {Code::kCorrupt, "the index has a block that is gone"};
    }
    if (block->id_ != id) {
      return {Code::kCorrupt, "the index has a block under another's id"};
    }
    if (!block->mapped() && block->discarded_bytes_ > 0) {
      return {Code::kCorrupt, "the index has a block that is not whole"};
    }
  }
  for (const Block* block : live_) {
    if (!block->id_.has_value()) continue;
    const auto entry = index_.find(*block->id_);
    if (entry == index_.end()) {
      return {Code::kCorrupt, "a block has an id that is not indexed"};
    }
    if (entry->second.address != block) {
      return {Code::kCorrupt, "two blocks have one id"};
    }
  }
  return {};
}

}  // namespace hearth
