// Whose memory goes when a session wants more than the pool has: the limit is
// the pool's, the order is decided here. Blocks mapped from the store do not
// count: the system can drop and read them again.
//
// Threads  any; a holder is claimed before it is told to give.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "cache/kv_sequence.h"
#include "hearth/engine.h"
#include "hearth/result.h"

namespace hearth {

// A session, as the budget sees it.
class KvHolder {
 public:
  virtual ~KvHolder() = default;
  // True: nobody uses it, or waits for what it would go on with, until
  // Unclaim. Does not wait.
  virtual bool TryClaim() = 0;
  // True: nobody is inside, though somebody may wait for what it would go on
  // with: nothing may be taken but what ExchangeStored gives. As TryClaim.
  virtual bool TryClaimInProgress() = 0;
  virtual void Unclaim() = 0;
  // REQUIRES for the rest: claimed, or called from inside.
  virtual KvSequence& kv() = 0;
  // Goes on from what the store has of it, which is mapped; nothing is lost.
  virtual void ExchangeStored() = 0;
  // Whether all that it holds is stored or on its way.
  virtual bool IsStored() = 0;
  // Hands all that it holds to the store, and waits until it is there.
  virtual void Store() = 0;
  // Lets go of everything.
  virtual void LetGo() = 0;
};

class RamBudget {
 public:
  // `pool` null: there is no limit.
  explicit RamBudget(std::shared_ptr<const BlockPool> pool)
      : pool_(std::move(pool)) {}

  bool has_limit() const {
    return pool_ != nullptr && pool_->options().bytes_max > 0;
  }
  void Add(KvHolder& holder) HEARTH_EXCLUDES(mutex_);
  void Remove(KvHolder& holder) HEARTH_EXCLUDES(mutex_);

  // Has the pool promise what `asking`, which the caller is inside, needs to
  // grow to `n_tokens`. When that is missing, what the store has of `asking`
  // becomes a mapping; then what it has of others; at last idle ones let go of
  // everything, as far as `relief` allows, the longest idle first, and only
  // when that is enough; else kResourceFull, and nobody has lost anything.
  Result<void> MakeRoom(KvHolder& asking, int n_tokens, Relief relief)
      HEARTH_EXCLUDES(mutex_);

 private:
  // Exchanges until nothing is missing; what still is.
  std::uint64_t Exchange(KvHolder& asking, int n_tokens, std::uint64_t missing)
      HEARTH_REQUIRES(mutex_);
  std::vector<KvHolder*> ClaimIdle(const KvHolder& asking,
                                   std::uint64_t missing, Relief relief)
      HEARTH_REQUIRES(mutex_);
  std::uint64_t BytesOf(const std::vector<KvHolder*>& idle) const;

  const std::shared_ptr<const BlockPool> pool_;
  Mutex mutex_;
  std::list<KvHolder*> holders_ HEARTH_GUARDED_BY(mutex_);  // last to ask, last
};

}  // namespace hearth
