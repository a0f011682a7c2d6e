// Memory of KV blocks: address space for the whole capacity is reserved once,
// blocks are handed out in place, and the system commits pages as they are
// first written. Nothing is moved or copied when a sequence grows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/bytes.h"
#include "hearth/result.h"

namespace hearth {

// One block's bytes. Either anonymous memory of a pool (writable until it is
// shared) or a read-only mapping of a stored file.
class Block {
 public:
  // A stored block: `owner` keeps the bytes alive.
  static std::shared_ptr<Block> Mapped(ByteSpan bytes,
                                       std::shared_ptr<const void> owner);

  Block(std::byte* bytes, std::size_t size, bool mapped,
        std::shared_ptr<const void> owner)
      : bytes_(bytes), size_(size), mapped_(mapped), owner_(std::move(owner)) {}

  const std::byte* data() const { return bytes_; }
  std::size_t size() const { return size_; }
  bool mapped() const { return mapped_; }
  // REQUIRES: !mapped().
  std::byte* writable() { return bytes_; }

  // Gives the memory of the whole pages inside [offset, offset + size) back to
  // the system. What lies there is lost, but for a mapping's, which the file
  // still has.
  void Discard(std::size_t offset, std::size_t size);

 private:
  std::byte* bytes_;
  std::size_t size_;
  bool mapped_;
  std::shared_ptr<const void> owner_;
};

class BlockPool {
 public:
  // Reserves room for `n_blocks` blocks of `block_bytes`, and for `n_spare`
  // more that are in use only while someone else (a save in progress) holds
  // blocks that their sequence has dropped. With `preallocate` every page of
  // the n_blocks is faulted in now, so that no later step waits for one.
  // `whole`: no part of a block is discarded before all of it is, so that full
  // blocks may share huge pages.
  static Result<BlockPool> Reserve(std::size_t block_bytes, int n_blocks,
                                   bool preallocate, int n_spare = 0,
                                   bool whole = false);

  // A block of undefined content; kResourceFull when all are in use. The block
  // goes back when its last reference does, and its memory to the system
  // (unless preallocated). The memory outlives the pool object if need be.
  Result<std::shared_ptr<Block>> Allocate();

  std::size_t block_bytes() const;
  int capacity() const;  // without the spare ones
  int n_spare() const;
  int n_in_use() const;
  bool preallocated() const;
  bool whole() const;
  // Anonymous memory that this pool holds resident: blocks in use, or the whole
  // reservation when preallocated.
  std::uint64_t committed_bytes() const;

 private:
  struct Arena;
  explicit BlockPool(std::shared_ptr<Arena> arena) : arena_(std::move(arena)) {}
  std::shared_ptr<Arena> arena_;
};

}  // namespace hearth
