// The room a store may take: counts every file, makes room before anything is
// written, and says no when that is not possible.
//
// How the budget holds with many processes. Whoever is about to write takes the
// lock of the file `usage`, makes room, creates its files at their full length
// (Directory::Create) and lets go; the bytes come later. So at any time the sum
// of all lengths, unfinished files included, is within the budget. `usage` also
// holds the sum, to spare most writers the scan. It is only ever too high:
// it is raised before a file is made, and what is deleted by hand is noticed by
// the scan that follows when the sum seems to reach the budget. Losing it costs
// one scan.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include "base/files/directory.h"
#include "hearth/result.h"
#include "store/budget/eviction.h"

namespace hearth {

struct SpaceLimits {
  std::uint64_t disk_budget_bytes = 0;         // 0: no limit
  std::uint64_t free_space_reserve_bytes = 0;  // to be left for others
  EvictionPolicy eviction;
  // How long the lock is waited for. It is held for as long as names are made
  // and deleted, never while bytes are written or flushed.
  std::chrono::milliseconds lock_wait{2000};
};

// What may be deleted for something new.
enum class Room {
  kEvict,  // whatever is least worthy
  kSpare   // nothing: only what is free already
};

// The lock, from Take until destruction.
class SpaceLock {
 public:
  // kIo, naming the process that holds it, when that takes longer than
  // limits.lock_wait; kCancelled when `stop` is set meanwhile (null: never).
  static Result<SpaceLock> Take(const Directory& root,
                                const SpaceLimits& limits,
                                const std::atomic<bool>* stop = nullptr);

  // Room for `bytes` more, now counted. kResourceFull when the rest of the
  // store may not be deleted; then nothing was. `recount` distrusts the sum.
  Result<void> MakeRoom(const Directory& root, std::uint64_t bytes,
                        const SpaceLimits& limits, const Protection& protection,
                        bool recount = false, Room room = Room::kEvict);

  // The sum; counted when it is not known.
  Result<std::uint64_t> Total(const Directory& root);

 private:
  explicit SpaceLock(UniqueFd fd) : fd_(std::move(fd)) {}
  bool ReadTotal(std::uint64_t& total) const;
  Result<void> WriteTotal(const Directory& root, std::uint64_t total) const;

  UniqueFd fd_;  // closing it unlocks
};

}  // namespace hearth
