#include "cache/block_pool.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/file.h"
#include "cache/huge_regions.h"

namespace hearth {

struct BlockPool::Arena {
  std::byte* base = nullptr;
  std::size_t block_bytes = 0;
  std::size_t slot_bytes = 0;  // block_bytes rounded up to pages
  int n_slots = 0;
  int n_spare = 0;  // of them
  bool preallocated = false, whole = false;
  std::mutex mutex;
  HugeRegions huge;
  std::vector<int> free_slots;  // taken from the back

  ~Arena() {
    if (base != nullptr) {
      ::munmap(base, slot_bytes * static_cast<std::size_t>(n_slots));
    }
  }

  void Release(int slot) {
    std::lock_guard lock(mutex);
    if (!preallocated || slot >= n_slots - n_spare) {
      huge.Release(slot);
      ::madvise(base + static_cast<std::size_t>(slot) * slot_bytes, slot_bytes,
                MADV_DONTNEED);
    }
    free_slots.push_back(slot);
  }
};

std::shared_ptr<Block> Block::Mapped(ByteSpan bytes,
                                     std::shared_ptr<const void> owner) {
  // Never written through: writable() is for blocks that are not mapped.
  return std::make_shared<Block>(const_cast<std::byte*>(bytes.data()),
                                 bytes.size(), true, std::move(owner));
}

void Block::Discard(std::size_t offset, std::size_t size) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes_ + offset);
  const std::uintptr_t end = (begin + size) / page * page;
  const std::uintptr_t first = (begin + page - 1) / page * page;
  if (first >= end) return;
  // A hint: should it fail, memory stays in use and nothing else happens.
  (void)::madvise(reinterpret_cast<void*>(first), end - first, MADV_DONTNEED);
}

Result<BlockPool> BlockPool::Reserve(std::size_t block_bytes, int n_blocks,
                                     bool preallocate, int n_spare,
                                     bool whole) {
  HEARTH_CHECK(block_bytes > 0 && n_blocks > 0 && n_spare >= 0);
  const int n_slots = n_blocks + n_spare;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  auto arena = std::make_shared<Arena>();
  arena->block_bytes = block_bytes;
  arena->slot_bytes = (block_bytes + page - 1) / page * page;
  const auto total =
      CheckedMul(arena->slot_bytes, static_cast<std::uint64_t>(n_slots));
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* base = total.has_value() ? ::mmap(nullptr, *total,
                                          PROT_READ | PROT_WRITE, flags, -1, 0)
                                 : MAP_FAILED;
  if (base == MAP_FAILED) {
    return {Code::kResourceFull,
            "cannot reserve address space for " + std::to_string(n_blocks) +
                " KV blocks of " + std::to_string(block_bytes) +
                " bytes: " + ErrnoText(errno) + "; lower --context"};
  }
  arena->base = static_cast<std::byte*>(base);
  arena->n_slots = n_slots;
  arena->n_spare = n_spare;
  arena->preallocated = preallocate;
  arena->whole = whole;
  if (whole) arena->huge = HugeRegions(arena->base, arena->slot_bytes, n_slots);
  const std::size_t wanted =
      arena->slot_bytes * static_cast<std::size_t>(n_blocks);
  if (preallocate && ::madvise(base, wanted, MADV_POPULATE_WRITE) != 0) {
    if (errno != EINVAL) {
      return {Code::kResourceFull,
              "cannot preallocate " + std::to_string(wanted) +
                  " bytes of KV: " + ErrnoText(errno) +
                  "; lower --context or leave --kv-preallocate out"};
    }
    // Kernels before 5.14: touch every page.
    for (std::size_t i = 0; i < wanted; i += page) {
      arena->base[i] = std::byte{0};
    }
  }
  arena->free_slots.reserve(static_cast<std::size_t>(n_slots));
  for (int slot = n_slots - 1; slot >= 0; --slot) {
    arena->free_slots.push_back(slot);
  }
  return BlockPool(std::move(arena));
}

Result<std::shared_ptr<Block>> BlockPool::Allocate() {
  int slot;
  {
    std::lock_guard lock(arena_->mutex);
    if (arena_->free_slots.empty()) {
      return {Code::kResourceFull,
              "all " + std::to_string(arena_->n_slots) +
                  " KV blocks are in use; raise --context"};
    }
    slot = arena_->free_slots.back();
    arena_->free_slots.pop_back();
    arena_->huge.Take(slot);
  }
  std::byte* bytes =
      arena_->base + static_cast<std::size_t>(slot) * arena_->slot_bytes;
  const std::shared_ptr<Arena> arena = arena_;
  return std::shared_ptr<Block>(
      new Block(bytes, arena->block_bytes, /*mapped=*/false, nullptr),
      [arena, slot](Block* block) {
        delete block;
        arena->Release(slot);
      });
}

std::size_t BlockPool::block_bytes() const { return arena_->block_bytes; }
int BlockPool::capacity() const { return arena_->n_slots - arena_->n_spare; }
int BlockPool::n_spare() const { return arena_->n_spare; }
bool BlockPool::preallocated() const { return arena_->preallocated; }
bool BlockPool::whole() const { return arena_->whole; }

int BlockPool::n_in_use() const {
  std::lock_guard lock(arena_->mutex);
  return arena_->n_slots - static_cast<int>(arena_->free_slots.size());
}

std::uint64_t BlockPool::committed_bytes() const {
  const int n = preallocated() ? std::max(capacity(), n_in_use()) : n_in_use();
  return static_cast<std::uint64_t>(n) * arena_->slot_bytes;
}

}  // namespace hearth
