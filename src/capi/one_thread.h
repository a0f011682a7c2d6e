// One thread at a time; its calls may nest.
#pragma once

#include <thread>

#include "base/mutex.h"

namespace hearth::capi {

class OneThread {
 public:
  // False when another thread is inside.
  [[nodiscard]] bool Enter() HEARTH_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (depth_ > 0 && user_ != std::this_thread::get_id()) return false;
    user_ = std::this_thread::get_id();
    ++depth_;
    return true;
  }
  void Leave() HEARTH_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    --depth_;
  }

 private:
  Mutex mutex_;
  int depth_ HEARTH_GUARDED_BY(mutex_) = 0;
  std::thread::id user_ HEARTH_GUARDED_BY(mutex_);  // while depth_ > 0
};

}  // namespace hearth::capi
