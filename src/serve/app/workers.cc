#include "serve/app/workers.h"

namespace hearth::serve {

Workers::Workers(int n_threads) {
  for (int i = 0; i < n_threads; ++i) {
    threads_.emplace_back([this] { Run(); });
  }
}

Workers::~Workers() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  more_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Workers::Do(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    line_.push_back(std::move(work));
  }
  more_.notify_one();
}

void Workers::Run() {
  for (;;) {
    std::function<void()> work;
    {
      std::unique_lock lock(mutex_);
      more_.wait(lock, [this] { return ending_ || !line_.empty(); });
      if (line_.empty()) return;
      work = std::move(line_.front());
      line_.pop_front();
    }
    work();
  }
}

}  // namespace hearth::serve
