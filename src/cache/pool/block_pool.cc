#include "cache/pool/block_pool.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>

#include "cache/block_table.h"

namespace hearth {

BlockPool::BlockPool(const BlockPoolOptions& options)
    : options_(options),
      blocks_(options.block_bytes, options.n_blocks, options.whole) {
  // Two of a sequence: the tail before a step and the one after it.
  constexpr int kTailsAtATime = 16;
  if (options.tail_bytes > 0) {
    tails_.emplace(options.tail_bytes, kTailsAtATime, /*whole=*/false);
  }
}

Result<std::shared_ptr<BlockPool>> BlockPool::Make(
    const BlockPoolOptions& options) {
  std::shared_ptr<BlockPool> pool(new BlockPool(options));
  const MutexLock lock(pool->mutex_);
  HEARTH_TRY(pool->blocks_.Reserve(options.preallocate));
  pool->preallocated_bytes_ = pool->blocks_.committed_bytes();
  return pool;
}

std::uint64_t BlockPool::held_bytes_with(int n_blocks, int n_tails,
                                         std::uint64_t state_bytes) const {
  std::uint64_t bytes = blocks_.committed_bytes_with(n_blocks) + copied_bytes_ -
                        discarded_bytes_ + state_bytes_ + state_bytes;
  if (tails_.has_value()) bytes += tails_->committed_bytes_with(n_tails);
  return bytes;
}

std::uint64_t BlockPool::Promise(BlockPromise& promise, int n_blocks,
                                 int n_tails, std::uint64_t state_bytes) {
  if (options_.bytes_max == 0) return 0;
  const MutexLock lock(mutex_);
  const int all_blocks = n_promised_blocks_ - promise.n_blocks_ + n_blocks;
  const int all_tails = n_promised_tails_ - promise.n_tails_ + n_tails;
  const std::uint64_t all_states =
      promised_state_bytes_ - promise.state_bytes_ + state_bytes;
  const std::uint64_t bytes =
      held_bytes_with(all_blocks, all_tails, all_states);
  const std::uint64_t before = promised_bytes();
  if (bytes > before && bytes > options_.bytes_max) {
    return bytes - options_.bytes_max;
  }
  n_promised_blocks_ = all_blocks;
  n_promised_tails_ = all_tails;
  promised_state_bytes_ = all_states;
  promise.n_blocks_ = n_blocks;
  promise.n_tails_ = n_tails;
  promise.state_bytes_ = state_bytes;
  return 0;
}

void BlockPool::Renew(BlockPromise& promise, const BlockPromise& before) {
  const MutexLock lock(mutex_);
  n_promised_blocks_ += before.n_blocks_ - promise.n_blocks_;
  n_promised_tails_ += before.n_tails_ - promise.n_tails_;
  promise.n_blocks_ = before.n_blocks_;
  promise.n_tails_ = before.n_tails_;
}

BlockPtr BlockPool::Share(std::unique_ptr<Block> block) {
  return BlockPtr(block.release(),
                  [pool = shared_from_this()](Block* b) { pool->Free(b); });
}

Result<BlockPtr> BlockPool::Allocate(Block::Home home, BlockPromise& promise) {
  auto block = std::make_unique<Block>();
  {
    const MutexLock lock(mutex_);
    const bool tail = home == Block::Home::kTail;
    int& promised = tail ? promise.n_tails_ : promise.n_blocks_;
    const std::uint64_t before = promised_bytes();
    const std::uint64_t after = held_bytes_with(
        n_promised_blocks_ + (tail ? 0 : 1), n_promised_tails_ + (tail ? 1 : 0),
        promised_state_bytes_);
    if (promised == 0 && options_.bytes_max > 0 && after > before &&
        after > options_.bytes_max) {
      return FullError();
    }
    HEARTH_ASSIGN(block->bytes_, (tail ? *tails_ : blocks_).Take());
    if (promised > 0) {
      --promised;
      --(tail ? n_promised_tails_ : n_promised_blocks_);
    }
    live_.insert(block.get());
  }
  block->size_ =
      home == Block::Home::kTail ? options_.tail_bytes : options_.block_bytes;
  block->home_ = home;
  return Share(std::move(block));
}

Error BlockPool::FullError() const {
  return {Code::kResourceFull,
          "all of the KV memory, " + std::to_string(options_.bytes_max) +
              " bytes, is in use; give it more, or end a sequence"};
}

Result<void> BlockPool::TakeState(std::uint64_t bytes, BlockPromise& promise) {
  const MutexLock lock(mutex_);
  const std::uint64_t promised = std::min(bytes, promise.state_bytes_);
  if (promised < bytes && options_.bytes_max > 0 &&
      promised_bytes() + (bytes - promised) > options_.bytes_max) {
    return FullError();
  }
  promise.state_bytes_ -= promised;
  promised_state_bytes_ -= promised;
  state_bytes_ += bytes;
  return {};
}

void BlockPool::AddState(std::uint64_t bytes) {
  const MutexLock lock(mutex_);
  state_bytes_ += bytes;
}

void BlockPool::ReturnState(std::uint64_t bytes) {
  const MutexLock lock(mutex_);
  state_bytes_ -= bytes;
}

BlockPtr BlockPool::Adopt(ByteSpan bytes, std::shared_ptr<const void> owner,
                          bool mapped) {
  auto block = std::make_unique<Block>();
  // Never written through: writable() is for blocks that are not read-only.
  block->bytes_ = const_cast<std::byte*>(bytes.data());
  block->size_ = bytes.size();
  block->home_ = mapped ? Block::Home::kMapped : Block::Home::kCopied;
  block->owner_ = std::move(owner);
  {
    const MutexLock lock(mutex_);
    (mapped ? mapped_bytes_ : copied_bytes_) += bytes.size();
    live_.insert(block.get());
  }
  return Share(std::move(block));
}

void BlockPool::Free(Block* block) {
  // What keeps stored bytes alive may take its time: outside of the lock.
  const std::unique_ptr<Block> freed(block);
  // A device must not write into the memory any more.
  block->copy_.Set(nullptr);
  const MutexLock lock(mutex_);
  Unindex(*block);
  live_.erase(block);
  discarded_bytes_ -= block->discarded_bytes_;
  switch (block->home_) {
    case Block::Home::kPool:
      blocks_.Return(block->bytes_);
      break;
    case Block::Home::kTail:
      tails_->Return(block->bytes_);
      break;
    case Block::Home::kMapped:
      mapped_bytes_ -= block->size_;
      break;
    case Block::Home::kCopied:
      copied_bytes_ -= block->size_;
      break;
  }
}

void BlockPool::Unindex(Block& block) {
  if (!block.id_.has_value()) return;
  const auto entry = index_.find(*block.id_);
  // Another block may have taken its place.
  if (entry != index_.end() && entry->second.address == &block) {
    index_.erase(entry);
  }
  block.id_.reset();
}

void BlockPool::Fill(const BlockPtr& block) {
  const MutexLock lock(mutex_);
  blocks_.Fill(block->bytes_);
}

BlockPtr BlockPool::Publish(BlockPtr block, const Digest& id) {
  const MutexLock lock(mutex_);
  Entry& entry = index_[id];
  if (BlockPtr there = entry.block.lock(); there != nullptr) return there;
  if (block->id_.has_value() && *block->id_ != id) Unindex(*block);
  block->id_ = id;
  index_[id] = {block, block.get()};
  return block;
}

BlockPtr BlockPool::Find(const Digest& id) {
  const MutexLock lock(mutex_);
  const auto entry = index_.find(id);
  return entry == index_.end() ? nullptr : entry->second.block.lock();
}

int BlockPool::CountHeld(std::span<const Digest> ids) const {
  const MutexLock lock(mutex_);
  const auto gone = [this](const Digest& id) HEARTH_REQUIRES(mutex_) {
    const auto entry = index_.find(id);
    return entry == index_.end() || entry->second.block.expired();
  };
  return static_cast<int>(std::find_if(ids.begin(), ids.end(), gone) -
                          ids.begin());
}

BlockPtr BlockPool::Exchange(const Digest& id, BlockPtr mapped) {
  // Let go of behind the lock: it may turn out to be the last reference.
  BlockPtr there;
  const MutexLock lock(mutex_);
  Entry& entry = index_[id];
  there = entry.block.lock();
  if (there != nullptr && there->mapped()) return there;
  if (there != nullptr) there->id_.reset();
  mapped->id_ = id;
  entry = {mapped, mapped.get()};
  return mapped;
}

bool BlockPool::Withdraw(const BlockPtr& block) {
  const MutexLock lock(mutex_);
  // Nobody gets a reference but from the index, which this lock guards, or from
  // the holder that asks.
  if (block.use_count() > 1 || block->n_tables() > 1) return false;
  Unindex(*block);
  return true;
}

void BlockPool::Discard(const BlockPtr& block, std::span<const Range> ranges) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  std::size_t bytes = 0;
  for (const Range& range : ranges) {
    const auto at = reinterpret_cast<std::uintptr_t>(block->bytes_);
    const std::uintptr_t end = (at + range.end) / page * page;
    const std::uintptr_t begin = (at + range.begin + page - 1) / page * page;
    if (begin >= end) continue;
    // A hint: should it fail, memory stays in use and nothing else happens.
    (void)::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
    bytes += end - begin;
  }
  if (block->mapped()) return;
  const MutexLock lock(mutex_);
  // Some of it may have been given back before.
  bytes = std::max(bytes, block->discarded_bytes_);
  discarded_bytes_ += bytes - block->discarded_bytes_;
  block->discarded_bytes_ = bytes;
}

PoolUsage BlockPool::Usage() const {
  const MutexLock lock(mutex_);
  return {.held_bytes = held_bytes(),
          .mapped_bytes = mapped_bytes_,
          .state_bytes = state_bytes_};
}

std::uint64_t BlockPool::BytesHeldOnlyBy(
    std::span<const BlockTable* const> tables) const {
  std::unordered_map<const Block*, int> n_tables;
  for (const BlockTable* table : tables) {
    for (int i = 0; i < table->size(); ++i) {
      if (table->At(i) != nullptr) ++n_tables[table->At(i).get()];
    }
  }
  const MutexLock lock(mutex_);
  std::uint64_t bytes = 0;
  for (const auto& [block, n] : n_tables) {
    if (block->mapped() || block->n_tables() > n) continue;
    bytes += (block->home_ == Block::Home::kPool ? blocks_.slot_bytes()
                                                 : block->size_) -
             block->discarded_bytes_;
  }
  return bytes;
}

void BlockPool::Enter(const BlockTable* table) {
  const MutexLock lock(mutex_);
  tables_.insert(table);
}

void BlockPool::Leave(const BlockTable* table) {
  const MutexLock lock(mutex_);
  tables_.erase(table);
}

}  // namespace hearth
