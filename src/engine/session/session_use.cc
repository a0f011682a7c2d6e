#include "engine/session/session_use.h"

namespace hearth {

bool SessionUse::Enter() {
  const MutexLock lock(mutex_);
  while (claimed_) unclaimed_.wait(mutex_);
  if (depth_ > 0 && user_ != std::this_thread::get_id()) return false;
  user_ = std::this_thread::get_id();
  ++depth_;
  return true;
}

void SessionUse::Leave() {
  const MutexLock lock(mutex_);
  --depth_;
}

bool SessionUse::outermost() {
  const MutexLock lock(mutex_);
  return depth_ == 1;
}

bool SessionUse::TryClaim() {
  const MutexLock lock(mutex_);
  if (claimed_ || depth_ > 0) return false;
  claimed_ = true;
  return true;
}

void SessionUse::Unclaim() {
  const MutexLock lock(mutex_);
  claimed_ = false;
  unclaimed_.notify_all();
}

}  // namespace hearth
