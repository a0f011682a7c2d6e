#include "serve/schedule/loader.h"

#include <utility>

namespace hearth::serve {

Loader::Loader(Backend& backend, OnFound on_found)
    : backend_(backend), on_found_(std::move(on_found)) {
  thread_ = std::thread([this] { Run(); });
}

Loader::~Loader() {
  {
    const MutexLock lock(mutex_);
    ending_ = true;
    news_.notify_all();
  }
  thread_.join();
}

void Loader::Post(Lookup lookup) {
  const MutexLock lock(mutex_);
  lookups_.push_back(std::move(lookup));
  news_.notify_all();
}

void Loader::Run() {
  while (true) {
    Lookup next;
    {
      const MutexLock lock(mutex_);
      while (lookups_.empty() && !ending_) news_.wait(mutex_);
      if (ending_) return;
      next = std::move(lookups_.front());
      lookups_.pop_front();
    }
    auto found = backend_.Find(next.tokens, next.n_held, next.key_space);
    on_found_(next.id, std::move(found));
  }
}

}  // namespace hearth::serve
