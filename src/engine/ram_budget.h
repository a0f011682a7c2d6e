// Memory that the KV of an engine's sessions may take together. Blocks mapped
// from the store do not count: the system can drop and read them again.
//
// Threads  one at a time, as for the sessions.
#pragma once

#include <cstdint>
#include <list>

#include "hearth/result.h"

namespace hearth {

// A session, as the budget sees it.
class KvHolder {
 public:
  virtual ~KvHolder() = default;
  virtual std::uint64_t HeldBytes() const = 0;
  // Nobody waits for what it would go on with.
  virtual bool Idle() const = 0;
  // Lets go of its memory; a prompt cache has what it held.
  virtual void LetGo() = 0;
};

class RamBudget {
 public:
  explicit RamBudget(std::uint64_t bytes_max) : bytes_max_(bytes_max) {}

  void Add(KvHolder& holder) { holders_.push_back(&holder); }
  void Remove(KvHolder& holder) { holders_.remove(&holder); }

  // Room for `bytes` more of `asking`. Others that are idle let go for it, the
  // longest idle first, and only when that is enough; else kResourceFull.
  Result<void> MakeRoom(KvHolder& asking, std::uint64_t bytes);

 private:
  const std::uint64_t bytes_max_;  // 0: no limit
  std::list<KvHolder*> holders_;   // the last to ask is the last
};

}  // namespace hearth
