// The forms of answers that were compiled last: an agent sends the same tools
// with each of its turns, and a large set takes a while.
//
// Threads  any.
#pragma once

#include <cstddef>
#include <list>
#include <optional>
#include <utility>

#include "base/hash.h"
#include "base/mutex.h"
#include "hearth/dialogue.h"

namespace hearth {

class FormCache {
 public:
  // `name`: a digest of all that the form is compiled from.
  std::optional<AnswerConstraint> Find(const Digest& name) {
    const MutexLock lock(mutex_);
    for (auto at = kept_.begin(); at != kept_.end(); ++at) {
      if (at->first != name) continue;
      kept_.splice(kept_.begin(), kept_, at);
      return at->second;
    }
    return std::nullopt;
  }

  void Keep(const Digest& name, const AnswerConstraint& form) {
    const MutexLock lock(mutex_);
    kept_.emplace_front(name, form);
    if (kept_.size() > kMost) kept_.pop_back();
  }

 private:
  // Each has the masks of its states, which grow as they are used.
  static constexpr std::size_t kMost = 16;

  Mutex mutex_;
  std::list<std::pair<Digest, AnswerConstraint>> kept_
      HEARTH_GUARDED_BY(mutex_);  // newest use first
};

}  // namespace hearth
