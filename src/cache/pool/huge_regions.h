// Puts the blocks of a pool into huge pages as they fill up: a decode step
// reads all of them, and half of the time that a core needs to read 4 KiB from
// memory goes into finding the page.
//
// A region of 2 MiB is converted when every block in it has been written, never
// before: memory in use stays that of the blocks. The kernel copies the region
// once (a fifth of a millisecond); nobody sees it move.
// Errors   none: where the kernel cannot (before 6.1), pages stay small.
// Threads  none; the pool's lock protects it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hearth {

class HugeRegions {
 public:
  HugeRegions() = default;  // converts nothing
  // For `n_slots` slots of `slot_bytes` from `base` on.
  HugeRegions(std::byte* base, std::size_t slot_bytes, int n_slots);

  // `slot` is going to be written.
  void Take(int slot);
  // All of it has been.
  void Fill(int slot);
  // Its memory goes back to the system.
  void Release(int slot);

 private:
  enum class State : std::uint8_t { kFree, kFilling, kFull };
  struct Range {
    std::size_t begin, end;
  };
  Range RegionsOf(int slot) const;  // that overlap it
  bool IsFull(std::size_t region) const;

  std::uintptr_t base_ = 0, first_region_ = 0;
  std::size_t slot_bytes_ = 0;
  std::vector<State> slots_;
  std::vector<bool> converted_;  // regions
};

}  // namespace hearth
