// Who uses a session: one thread at a time, whose calls may nest (a callback
// may ask for its usage), or the memory budget while nobody does.
#pragma once

#include <condition_variable>
#include <thread>

#include "base/mutex.h"

namespace hearth {

class SessionUse {
 public:
  // False, and nothing changes, when another thread is inside: the caller's
  // mistake. Waits while the budget has it.
  [[nodiscard]] bool Enter() HEARTH_EXCLUDES(mutex_);
  void Leave() HEARTH_EXCLUDES(mutex_);
  // Whether only one of the thread's calls is inside. Called from inside.
  bool outermost() HEARTH_EXCLUDES(mutex_);

  // For the budget. Does not wait.
  [[nodiscard]] bool TryClaim() HEARTH_EXCLUDES(mutex_);
  void Unclaim() HEARTH_EXCLUDES(mutex_);

 private:
  Mutex mutex_;
  std::condition_variable_any unclaimed_;
  bool claimed_ HEARTH_GUARDED_BY(mutex_) = false;
  int depth_ HEARTH_GUARDED_BY(mutex_) = 0;
  std::thread::id user_ HEARTH_GUARDED_BY(mutex_);  // while depth_ > 0
};

}  // namespace hearth
