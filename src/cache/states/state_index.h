// The positions that sequences of an engine keep, found by the prefix that they
// are behind: sessions that begin alike hold one state. As the pool's index of
// blocks it holds nothing.
//
// Threads  any, all at once.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <unordered_map>

#include "base/hash.h"
#include "base/mutex.h"
#include "cache/states/state_slab.h"

namespace hearth {

class StateIndex {
 public:
  // `id`: that of the prefix of so many tokens (cache/block_chain.h). Nothing
  // happens for a null one.
  void Publish(const Digest& id, const StateCheckpointPtr& here)
      HEARTH_EXCLUDES(mutex_);
  // The longest position, of n_max tokens at most, that is behind a prefix of
  // `tokens`; null: none. `ids`: of the full blocks, behind `root`; step: their
  // tokens.
  StateCheckpointPtr Longest(const Digest& root,
                             std::span<const std::int32_t> tokens,
                             std::span<const Digest> ids, int step, int n_max)
      HEARTH_EXCLUDES(mutex_);

 private:
  void Prune() HEARTH_REQUIRES(mutex_);

  using Entries =
      std::unordered_map<Digest, std::weak_ptr<const StateCheckpoint>>;
  Mutex mutex_;
  std::map<int, Entries> by_tokens_ HEARTH_GUARDED_BY(mutex_);
  std::size_t size_ HEARTH_GUARDED_BY(mutex_) = 0;
  std::size_t prune_at_ HEARTH_GUARDED_BY(mutex_) = 64;
};

}  // namespace hearth
