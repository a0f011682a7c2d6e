#include "cache/states/state_index.h"

#include <algorithm>

#include "cache/block_chain.h"

namespace hearth {

void StateIndex::Publish(const Digest& id, const StateCheckpointPtr& here) {
  if (here == nullptr) return;
  const MutexLock lock(mutex_);
  const auto [entry, is_new] = by_tokens_[here->n_tokens].try_emplace(id, here);
  size_ += is_new ? 1 : 0;
  // The one that is known stays: whoever has it holds it already.
  if (!is_new && entry->second.expired()) entry->second = here;
  if (size_ > prune_at_) Prune();
}

void StateIndex::Prune() {
  for (auto entries = by_tokens_.begin(); entries != by_tokens_.end();) {
    size_ -= std::erase_if(entries->second, [](const auto& entry) {
      return entry.second.expired();
    });
    entries = entries->second.empty() ? by_tokens_.erase(entries)
                                      : std::next(entries);
  }
  prune_at_ = std::max<std::size_t>(64, 2 * size_);
}

StateCheckpointPtr StateIndex::Longest(const Digest& root,
                                       std::span<const std::int32_t> tokens,
                                       std::span<const Digest> ids, int step,
                                       int n_max) {
  // Let go of behind the lock: it may turn out to be the last reference.
  StateCheckpointPtr found;
  const MutexLock lock(mutex_);
  for (auto at = by_tokens_.upper_bound(n_max); at != by_tokens_.begin();) {
    --at;
    const int n = at->first;
    const auto n_full = static_cast<std::size_t>(n / step);
    if (n > static_cast<int>(tokens.size()) || n_full > ids.size()) continue;
    const Digest& parent = n_full == 0 ? root : ids[n_full - 1];
    const Digest id =
        n % step == 0
            ? parent
            : ChildId(parent,
                      tokens.subspan(n_full * static_cast<std::size_t>(step),
                                     static_cast<std::size_t>(n % step)));
    const auto entry = at->second.find(id);
    if (entry == at->second.end()) continue;
    found = entry->second.lock();
    if (found != nullptr) return found;
  }
  return nullptr;
}

}  // namespace hearth
