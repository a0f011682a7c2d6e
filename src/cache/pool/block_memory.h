// Address space for blocks of one size: reserved for many at a time, handed out
// in place, and committed by the system as it is first written. Nothing is
// moved or copied when sequences grow.
//
// Threads  none; the pool's lock protects it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "cache/pool/huge_regions.h"
#include "hearth/result.h"

namespace hearth {

class BlockMemory {
 public:
  // Slots for blocks of `block_bytes`, `n_at_a_time` reserved together.
  // `whole`: no part of a block is given back before all of it is, so that full
  // blocks may share huge pages.
  BlockMemory(std::size_t block_bytes, int n_at_a_time, bool whole);
  ~BlockMemory();
  BlockMemory(const BlockMemory&) = delete;
  BlockMemory& operator=(const BlockMemory&) = delete;

  // Address space for the first `n_at_a_time` blocks. `preallocate`: its pages
  // are faulted in, so that no later step waits for one, and never given back.
  // Called once, before Take. kResourceFull.
  Result<void> Reserve(bool preallocate);
  // A slot of undefined content. kResourceFull when the system has no address
  // space left.
  Result<std::byte*> Take();
  // All of a slot has been written.
  void Fill(const std::byte* slot);
  // The slot is free again, and its memory the system's.
  void Return(const std::byte* slot);

  std::size_t slot_bytes() const { return slot_bytes_; }
  int n_in_use() const { return n_in_use_; }
  // Memory that is taken: slots in use, and what was preallocated.
  std::uint64_t committed_bytes() const;
  // Memory that is taken once `n` more slots are.
  std::uint64_t committed_bytes_with(int n) const;

  // Whether each slot is either free or in use, and `slots` are in use.
  // kCorrupt, for tests.
  Result<void> CheckIntegrity(const std::vector<const std::byte*>& slots) const;

 private:
  struct Arena {
    std::byte* base;
    HugeRegions huge;
  };
  struct Slot {
    std::size_t arena;
    int index;
  };
  Result<void> AddArena();
  Result<void> Preallocate();
  Slot SlotOf(const std::byte* slot) const;
  std::byte* BytesOf(const Slot& slot) const {
    return arenas_[slot.arena].base +
           static_cast<std::size_t>(slot.index) * slot_bytes_;
  }
  std::size_t arena_bytes() const {
    return slot_bytes_ * static_cast<std::size_t>(n_at_a_time_);
  }

  std::size_t slot_bytes_;  // rounded up to pages
  int n_at_a_time_;
  bool whole_;
  bool preallocated_ = false;  // the first arena
  std::vector<Arena> arenas_;
  std::vector<Slot> free_;  // taken from the back
  int n_in_use_ = 0;
  int n_in_use_preallocated_ = 0;  // of them, in the preallocated arena
};

}  // namespace hearth
