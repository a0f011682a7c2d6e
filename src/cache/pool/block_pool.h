// The blocks of all sequences of an engine: one pool of memory with one limit,
// and one index by chain id, so that what two sequences have in common is in
// memory once.
//
// A block is sealed when it is full: then nobody writes it, and any number of
// sequences and saves hold it. A sealed block with an id is found by it as long
// as somebody holds it; the index itself holds nothing.
//
// Threads  any, all at once. A block's bytes are written by the one sequence
//          that holds it, before it is published.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/mutex.h"
#include "cache/pool/block_memory.h"
#include "hearth/result.h"
#include "model/device_kv.h"

namespace hearth {

class BlockTable;

// One block's bytes.
class Block {
 public:
  enum class Home {
    kPool,    // anonymous memory of the pool
    kTail,    // the same, of a block in fp32
    kMapped,  // a mapping of a stored file: the system can drop and read it
    kCopied,  // stored bytes in memory that their owner allocated
  };

  const std::byte* data() const { return bytes_; }
  std::size_t size() const { return size_; }
  Home home() const { return home_; }
  bool mapped() const { return home_ == Home::kMapped; }
  bool read_only() const {
    return home_ == Home::kMapped || home_ == Home::kCopied;
  }
  // REQUIRES: !read_only(), and the caller is the one holder.
  std::byte* writable() { return bytes_; }
  // The bytes for a device, which may have a copy of them. What the device has
  // written is in data() after Fetch.
  DeviceBlock for_device() { return {{bytes_, size_}, &copy_}; }
  Result<void> Fetch() { return copy_.Fetch({bytes_, size_}); }
  // Takes over the copy of a block with the same bytes.
  void ShareCopyOf(const Block& other) { copy_.Set(other.copy_.Get()); }
  // Block tables that hold it; saves in progress do not count.
  int n_tables() const { return n_tables_.load(std::memory_order_acquire); }

 private:
  friend class BlockPool;
  friend class HeldBlock;

  std::byte* bytes_ = nullptr;
  std::size_t size_ = 0;
  Home home_ = Home::kPool;
  std::shared_ptr<const void> owner_;  // of stored bytes
  CopyHolder copy_;
  // The pool's, under its lock:
  std::optional<Digest> id_;
  std::size_t discarded_bytes_ = 0;
  std::atomic<int> n_tables_ = 0;
};

using BlockPtr = std::shared_ptr<Block>;

// A block in a table.
class HeldBlock {
 public:
  HeldBlock() = default;
  explicit HeldBlock(BlockPtr block) : block_(std::move(block)) { Count(1); }
  HeldBlock(const HeldBlock& other) : block_(other.block_) { Count(1); }
  HeldBlock(HeldBlock&& other) noexcept : block_(std::move(other.block_)) {}
  HeldBlock& operator=(HeldBlock other) noexcept {
    block_.swap(other.block_);
    return *this;
  }
  ~HeldBlock() { Count(-1); }

  const BlockPtr& get() const { return block_; }

 private:
  void Count(int n) {
    if (block_ != nullptr) {
      block_->n_tables_.fetch_add(n, std::memory_order_acq_rel);
    }
  }
  BlockPtr block_;
};

// Room that a sequence has been promised and has not taken yet. Without a limit
// nothing need be promised.
class BlockPromise {
 private:
  friend class BlockPool;
  int n_blocks_ = 0, n_tails_ = 0;
  std::uint64_t state_bytes_ = 0;
};

struct BlockPoolOptions {
  std::size_t block_bytes = 0;
  std::size_t tail_bytes = 0;   // of a tail that is no block yet; 0: none
  int n_blocks = 1;             // of a sequence: address space for as many is
                                // reserved at a time
  bool preallocate = false;     // n_blocks are faulted in at once
  bool whole = false;           // no part of a block is given back before all
  std::uint64_t bytes_max = 0;  // of memory; 0: no limit
};

// Memory of all sequences, each block counted once.
struct PoolUsage {
  std::uint64_t held_bytes = 0;    // anonymous; of saves in progress, too
  std::uint64_t mapped_bytes = 0;  // shared with the page cache
  std::uint64_t state_bytes = 0;   // of held_bytes: states
};

class BlockPool : public std::enable_shared_from_this<BlockPool> {
 public:
  static Result<std::shared_ptr<BlockPool>> Make(
      const BlockPoolOptions& options);

  // A block of undefined content, of what was promised as long as that lasts;
  // kResourceFull at the limit. It goes back when its last reference does, and
  // its memory to the system (unless preallocated). It outlives whoever made
  // the pool if need be.
  Result<BlockPtr> Allocate(BlockPromise& promise) {
    return Allocate(Block::Home::kPool, promise);
  }
  Result<BlockPtr> AllocateTail(BlockPromise& promise) {
    return Allocate(Block::Home::kTail, promise);
  }
  // Promises so many blocks and tails, and bytes of states, in place of what
  // was promised before. Gives 0, or the bytes that are missing for it; then
  // nothing has changed.
  std::uint64_t Promise(BlockPromise& promise, int n_blocks, int n_tails,
                        std::uint64_t state_bytes = 0);
  // Promises again what has been taken since the promise was `before`. To be
  // called before that is given back, so that nobody else gets it. What states
  // took stays taken.
  void Renew(BlockPromise& promise, const BlockPromise& before);
  // States take `bytes` of memory, of what was promised as long as that lasts,
  // until ReturnState. kResourceFull at the limit.
  Result<void> TakeState(std::uint64_t bytes, BlockPromise& promise);
  // The same of memory that is there already, whatever the limit.
  void AddState(std::uint64_t bytes);
  void ReturnState(std::uint64_t bytes);
  // A block of stored bytes, which `owner` keeps alive.
  BlockPtr Adopt(ByteSpan bytes, std::shared_ptr<const void> owner,
                 bool mapped);

  // All of the block has been written.
  void Fill(const BlockPtr& block);
  // The sealed block is found under `id` from now on. Gives the block to go on
  // with: another one when the pool has the same already.
  BlockPtr Publish(BlockPtr block, const Digest& id);
  // Null when nobody holds it.
  BlockPtr Find(const Digest& id);
  // How many of the ids, from the first on, Find would find now.
  int CountHeld(std::span<const Digest> ids) const;
  // Stored bytes take the place of the block that is found under `id`: gives
  // the block to go on with, which is the same for everybody who asks. Whoever
  // holds the other one keeps it until it asks.
  BlockPtr Exchange(const Digest& id, BlockPtr mapped);

  // Whether the block is the caller's alone; then nobody finds it any more, and
  // it may be written, or parts of it given back.
  bool Withdraw(const BlockPtr& block);
  // Gives back the memory of the whole pages inside the ranges of a block that
  // was withdrawn. What lies there is lost, but for a mapping's, which the file
  // still has.
  struct Range {
    std::size_t begin, end;
  };
  void Discard(const BlockPtr& block, std::span<const Range> ranges);

  const BlockPoolOptions& options() const { return options_; }
  PoolUsage Usage() const;
  // Memory that is taken whether or not a block is in use.
  std::uint64_t preallocated_bytes() const { return preallocated_bytes_; }
  // Memory that is free again when these tables let go of their blocks: what
  // others or saves hold, too, stays.
  std::uint64_t BytesHeldOnlyBy(
      std::span<const BlockTable* const> tables) const;

  // Whether memory, tables and index agree: every slot is free or one live
  // block's; every table's blocks are this pool's and counted; what is indexed
  // is alive, whole, and under its own id, and no other block has the id.
  // kCorrupt says what does not. For tests. REQUIRES: no thread is inside a
  // sequence.
  Result<void> CheckIntegrity() const;

 private:
  friend class BlockTable;

  explicit BlockPool(const BlockPoolOptions& options);
  Result<BlockPtr> Allocate(Block::Home home, BlockPromise& promise);
  BlockPtr Share(std::unique_ptr<Block> block);
  void Free(Block* block);
  void Unindex(Block& block) HEARTH_REQUIRES(mutex_);
  std::uint64_t held_bytes() const HEARTH_REQUIRES(mutex_) {
    return held_bytes_with(0, 0, 0);
  }
  std::uint64_t held_bytes_with(int n_blocks, int n_tails,
                                std::uint64_t state_bytes) const
      HEARTH_REQUIRES(mutex_);
  std::uint64_t promised_bytes() const HEARTH_REQUIRES(mutex_) {
    return held_bytes_with(n_promised_blocks_, n_promised_tails_,
                           promised_state_bytes_);
  }
  Error FullError() const;
  Result<void> CheckTables() const HEARTH_REQUIRES(mutex_);
  // `held` keeps what was looked at until the lock is free again.
  Result<void> CheckIndex(std::vector<BlockPtr>& held) const
      HEARTH_REQUIRES(mutex_);

  // Tables that are walked by CheckIntegrity.
  void Enter(const BlockTable* table);
  void Leave(const BlockTable* table);

  struct Entry {
    std::weak_ptr<Block> block;
    const Block* address;
  };

  const BlockPoolOptions options_;
  std::uint64_t preallocated_bytes_ = 0;  // from Make on
  mutable Mutex mutex_;
  BlockMemory blocks_ HEARTH_GUARDED_BY(mutex_);
  std::optional<BlockMemory> tails_ HEARTH_GUARDED_BY(mutex_);
  std::unordered_map<Digest, Entry> index_ HEARTH_GUARDED_BY(mutex_);
  std::unordered_set<const Block*> live_ HEARTH_GUARDED_BY(mutex_);
  std::set<const BlockTable*> tables_ HEARTH_GUARDED_BY(mutex_);
  int n_promised_blocks_ HEARTH_GUARDED_BY(mutex_) = 0;
  int n_promised_tails_ HEARTH_GUARDED_BY(mutex_) = 0;
  std::uint64_t promised_state_bytes_ HEARTH_GUARDED_BY(mutex_) = 0;
  std::uint64_t state_bytes_ HEARTH_GUARDED_BY(mutex_) = 0;
  std::uint64_t mapped_bytes_ HEARTH_GUARDED_BY(mutex_) = 0;
  std::uint64_t copied_bytes_ HEARTH_GUARDED_BY(mutex_) = 0;
  std::uint64_t discarded_bytes_ HEARTH_GUARDED_BY(mutex_) = 0;
};

}  // namespace hearth
