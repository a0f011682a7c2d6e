#include "cache/pool/block_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <string>

#include "base/bytes.h"
#include "base/check.h"
#include "base/file.h"

namespace hearth {
namespace {

std::size_t PageBytes() {
  return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace

BlockMemory::BlockMemory(std::size_t block_bytes, int n_at_a_time, bool whole)
    : slot_bytes_((block_bytes + PageBytes() - 1) / PageBytes() * PageBytes()),
      n_at_a_time_(n_at_a_time),
      whole_(whole) {
  HEARTH_CHECK(block_bytes > 0 && n_at_a_time > 0);
}

BlockMemory::~BlockMemory() {
  for (const Arena& arena : arenas_) ::munmap(arena.base, arena_bytes());
}

Result<void> BlockMemory::Reserve(bool preallocate) {
  HEARTH_CHECK(arenas_.empty());
  HEARTH_TRY(AddArena());
  return preallocate ? Preallocate() : Result<void>();
}

Result<void> BlockMemory::AddArena() {
  const auto total =
      CheckedMul(slot_bytes_, static_cast<std::uint64_t>(n_at_a_time_));
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* base = total.has_value() ? ::mmap(nullptr, *total,
                                          PROT_READ | PROT_WRITE, flags, -1, 0)
                                 : MAP_FAILED;
  if (base == MAP_FAILED) {
    return {Code::kResourceFull,
            "cannot reserve address space for " + std::to_string(n_at_a_time_) +
                " KV blocks of " + std::to_string(slot_bytes_) +
                " bytes: " + ErrnoText(errno) + "; give a smaller context"};
  }
  Arena arena{static_cast<std::byte*>(base), {}};
  if (whole_) arena.huge = HugeRegions(arena.base, slot_bytes_, n_at_a_time_);
  arenas_.push_back(std::move(arena));
  for (int i = n_at_a_time_ - 1; i >= 0; --i) {
    free_.push_back({arenas_.size() - 1, i});
  }
  return {};
}

Result<void> BlockMemory::Preallocate() {
  std::byte* base = arenas_.front().base;
  if (::madvise(base, arena_bytes(), MADV_POPULATE_WRITE) != 0) {
    if (errno != EINVAL) {
      return {Code::kResourceFull,
              "cannot preallocate " + std::to_string(arena_bytes()) +
                  " bytes of KV: " + ErrnoText(errno) +
                  "; give a smaller context or do not preallocate"};
    }
    // Kernels before 5.14: touch every page.
    for (std::size_t i = 0; i < arena_bytes(); i += PageBytes()) {
      base[i] = std::byte{0};
    }
  }
  preallocated_ = true;
  return {};
}

Result<std::byte*> BlockMemory::Take() {
  if (free_.empty()) HEARTH_TRY(AddArena());
  const Slot slot = free_.back();
  free_.pop_back();
  ++n_in_use_;
  if (slot.arena == 0) ++n_in_use_preallocated_;
  arenas_[slot.arena].huge.Take(slot.index);
  return BytesOf(slot);
}

BlockMemory::Slot BlockMemory::SlotOf(const std::byte* slot) const {
  for (std::size_t i = 0; i < arenas_.size(); ++i) {
    const std::byte* base = arenas_[i].base;
    if (slot >= base && slot < base + arena_bytes()) {
      return {i, static_cast<int>(static_cast<std::size_t>(slot - base) /
                                  slot_bytes_)};
    }
  }
  HEARTH_CHECK(false);
  return {};
}

void BlockMemory::Fill(const std::byte* slot) {
  const Slot at = SlotOf(slot);
  arenas_[at.arena].huge.Fill(at.index);
}

void BlockMemory::Return(const std::byte* slot) {
  const Slot at = SlotOf(slot);
  if (!preallocated_ || at.arena > 0) {
    arenas_[at.arena].huge.Release(at.index);
    ::madvise(BytesOf(at), slot_bytes_, MADV_DONTNEED);
  }
  if (at.arena == 0) --n_in_use_preallocated_;
  --n_in_use_;
  free_.push_back(at);
}

std::uint64_t BlockMemory::committed_bytes() const {
  return committed_bytes_with(0);
}

std::uint64_t BlockMemory::committed_bytes_with(int n) const {
  // What is preallocated is taken in any case, and is handed out first.
  const int n_at_once = preallocated_ ? n_at_a_time_ : 0;
  const int n_there = preallocated_ ? n_at_a_time_ - n_in_use_preallocated_ : 0;
  const int n_elsewhere =
      preallocated_ ? n_in_use_ - n_in_use_preallocated_ : n_in_use_;
  return static_cast<std::uint64_t>(n_at_once + n_elsewhere +
                                    std::max(0, n - n_there)) *
         slot_bytes_;
}

Result<void> BlockMemory::CheckIntegrity(
    const std::vector<const std::byte*>& slots) const {
  std::set<const std::byte*> all;
  for (const Slot& slot : free_) all.insert(BytesOf(slot));
  if (all.size() != free_.size()) {
    return {Code::kCorrupt, "a free slot is listed twice"};
  }
  for (const std::byte* slot : slots) {
    if (BytesOf(SlotOf(slot)) != slot) {
      return {Code::kCorrupt, "a block does not begin where a slot does"};
    }
    if (!all.insert(slot).second) {
      return {Code::kCorrupt, "a slot is in use twice, or free and in use"};
    }
  }
  if (static_cast<int>(slots.size()) != n_in_use_ ||
      all.size() != arenas_.size() * static_cast<std::size_t>(n_at_a_time_)) {
    return {Code::kCorrupt, "a slot is lost"};
  }
  return {};
}

}  // namespace hearth
