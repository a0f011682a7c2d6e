#include "engine/session/ram_budget.h"

#include <algorithm>
#include <string>
#include <vector>

namespace hearth {
namespace {

std::string Mebibytes(std::uint64_t bytes) {
  return std::to_string((bytes + (1 << 20) - 1) >> 20) + " MiB";
}

}  // namespace

void RamBudget::Add(KvHolder& holder) {
  const MutexLock lock(mutex_);
  accounts_.push_back({&holder, 0});
}

void RamBudget::Remove(KvHolder& holder) {
  const MutexLock lock(mutex_);
  accounts_.erase(Find(holder));
}

std::list<RamBudget::Account>::iterator RamBudget::Find(
    const KvHolder& holder) {
  return std::find_if(accounts_.begin(), accounts_.end(),
                      [&](const Account& a) { return a.holder == &holder; });
}

void RamBudget::Settle(KvHolder& holder, std::uint64_t held) {
  const MutexLock lock(mutex_);
  Find(holder)->bytes = held;
}

Result<void> RamBudget::MakeRoom(KvHolder& asking, std::uint64_t held,
                                 std::uint64_t more) {
  if (!has_limit()) return {};
  const MutexLock lock(mutex_);
  accounts_.splice(accounts_.end(), accounts_, Find(asking));
  accounts_.back().bytes = held;
  std::uint64_t taken = more;
  for (const Account& account : accounts_) taken += account.bytes;
  if (taken > bytes_max_) {
    HEARTH_TRY(Free(taken - bytes_max_, taken, asking));
  }
  accounts_.back().bytes = held + more;
  return {};
}

Result<void> RamBudget::Free(std::uint64_t bytes, std::uint64_t taken,
                             const KvHolder& asking) {
  std::vector<Account*> idle;
  std::uint64_t can_go = 0;
  for (Account& account : accounts_) {
    if (account.holder == &asking || account.bytes == 0) continue;
    if (!account.holder->TryClaim()) continue;
    idle.push_back(&account);
    can_go += account.bytes;
    if (can_go >= bytes) break;
  }
  std::uint64_t freed = 0;
  for (Account* account : idle) {
    if (can_go >= bytes) {
      const std::uint64_t before = account->bytes;
      account->bytes = account->holder->LetGo();
      freed += before - std::min(before, account->bytes);
    }
    account->holder->Unclaim();
  }
  if (freed >= bytes) return {};
  return {Code::kResourceFull,
          "the KV cache would take " + Mebibytes(taken - can_go) +
              " of memory and the KV memory budget allows " +
              Mebibytes(bytes_max_) +
              "; shorten the prompt, store keys and values in fewer bits or "
              "raise the budget"};
}

}  // namespace hearth
