// Memory that the KV of an engine's sessions may take together. Blocks mapped
// from the store do not count: the system can drop and read them again.
//
// Threads  any; a holder is claimed before it is told to let go.
#pragma once

#include <cstdint>
#include <list>

#include "base/mutex.h"
#include "hearth/result.h"

namespace hearth {

// A session, as the budget sees it.
class KvHolder {
 public:
  virtual ~KvHolder() = default;
  // True: nobody uses it, or waits for what it would go on with, until
  // Unclaim. Does not wait.
  virtual bool TryClaim() = 0;
  virtual void Unclaim() = 0;
  // Lets go of its memory; a prompt cache has what it held. Gives the bytes
  // that it still takes. REQUIRES: claimed.
  virtual std::uint64_t LetGo() = 0;
};

class RamBudget {
 public:
  explicit RamBudget(std::uint64_t bytes_max) : bytes_max_(bytes_max) {}

  bool has_limit() const { return bytes_max_ > 0; }
  void Add(KvHolder& holder) HEARTH_EXCLUDES(mutex_);
  void Remove(KvHolder& holder) HEARTH_EXCLUDES(mutex_);

  // Room for `asking`, which takes `held` bytes, to take `more`; they count as
  // taken from now on. Others that can be claimed let go for it, the longest
  // idle first, and only when that is enough; else kResourceFull, and nothing
  // has changed.
  Result<void> MakeRoom(KvHolder& asking, std::uint64_t held,
                        std::uint64_t more) HEARTH_EXCLUDES(mutex_);
  // What `holder` takes after all: it grew by less, or shrank.
  void Settle(KvHolder& holder, std::uint64_t held) HEARTH_EXCLUDES(mutex_);

 private:
  struct Account {
    KvHolder* holder;
    std::uint64_t bytes;
  };
  std::list<Account>::iterator Find(const KvHolder& holder)
      HEARTH_REQUIRES(mutex_);
  Result<void> Free(std::uint64_t bytes, std::uint64_t taken,
                    const KvHolder& asking) HEARTH_REQUIRES(mutex_);

  const std::uint64_t bytes_max_;  // 0: no limit
  Mutex mutex_;
  // The last to ask is the last.
  std::list<Account> accounts_ HEARTH_GUARDED_BY(mutex_);
};

}  // namespace hearth
