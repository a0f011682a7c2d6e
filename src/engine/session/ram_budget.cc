#include "engine/session/ram_budget.h"

#include <algorithm>
#include <string>

#include "base/words/units.h"

namespace hearth {
void RamBudget::Add(KvHolder& holder) {
  const MutexLock lock(mutex_);
  holders_.push_back(&holder);
}

void RamBudget::Remove(KvHolder& holder) {
  const MutexLock lock(mutex_);
  holders_.remove(&holder);
}

std::uint64_t RamBudget::BytesOf(const std::vector<KvHolder*>& idle) const {
  std::vector<const BlockTable*> tables;
  std::uint64_t tails = 0;
  for (KvHolder* holder : idle) {
    tables.push_back(holder->kv().table());
    tails += holder->kv().TailBytes();
  }
  return pool_->BytesHeldOnlyBy(tables) + tails;
}

// As many as have to let go of everything for `missing` bytes; none when all of
// them together are not enough.
std::vector<KvHolder*> RamBudget::ClaimIdle(const KvHolder& asking,
                                            std::uint64_t missing,
                                            Relief relief) {
  std::vector<KvHolder*> idle;
  for (KvHolder* holder : holders_) {
    if (holder == &asking || !holder->TryClaim()) continue;
    if (relief == Relief::kFree && !holder->IsStored()) {
      holder->Unclaim();
      continue;
    }
    idle.push_back(holder);
    if (BytesOf(idle) >= missing) return idle;
  }
  for (KvHolder* holder : idle) holder->Unclaim();
  return {};
}

std::uint64_t RamBudget::Exchange(KvHolder& asking, int n_tokens,
                                  std::uint64_t missing) {
  asking.ExchangeStored();
  missing = asking.kv().Reserve(n_tokens);
  for (KvHolder* holder : holders_) {
    if (missing == 0) break;
    if (holder == &asking || !holder->TryClaimInProgress()) continue;
    holder->ExchangeStored();
    holder->Unclaim();
    missing = asking.kv().Reserve(n_tokens);
  }
  return missing;
}

Result<void> RamBudget::MakeRoom(KvHolder& asking, int n_tokens,
                                 Relief relief) {
  if (!has_limit()) return {};
  std::uint64_t missing = asking.kv().Reserve(n_tokens);
  const MutexLock lock(mutex_);
  holders_.remove(&asking);
  holders_.push_back(&asking);
  if (missing > 0) missing = Exchange(asking, n_tokens, missing);
  if (missing == 0) return {};
  const std::vector<KvHolder*> idle = ClaimIdle(asking, missing, relief);
  for (KvHolder* holder : idle) {
    if (missing == 0 || relief != Relief::kWait) break;
    holder->Store();
    holder->ExchangeStored();
    missing = asking.kv().Reserve(n_tokens);
  }
  for (KvHolder* holder : idle) {
    if (missing > 0) {
      holder->LetGo();
      missing = asking.kv().Reserve(n_tokens);
    }
    holder->Unclaim();
  }
  if (missing == 0) return {};
  return {Code::kResourceFull,
          "the KV cache is " + InUnits(missing) + " of memory short of what " +
              std::to_string(n_tokens) +
              " tokens take, and the KV memory budget is " +
              InUnits(pool_->options().bytes_max) +
              "; shorten the prompt, store keys and values in fewer bits or "
              "raise the budget"};
}

}  // namespace hearth
