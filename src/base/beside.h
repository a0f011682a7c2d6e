// Work that is done beside other work: on a thread of its own, or when its
// result is asked for if the system has no thread to give.
#pragma once

#include <future>
#include <thread>
#include <utility>

#include "base/start_thread.h"

namespace hearth {

template <typename T>
class Beside {
 public:
  // What `work` refers to lives until the object is gone.
  template <typename Work>
  explicit Beside(Work work)
      : task_(std::move(work)),
        result_(task_.get_future()),
        thread_(TryStartThread([this] { task_(); })) {}
  ~Beside() {
    if (thread_.joinable()) thread_.join();
  }
  Beside(const Beside&) = delete;
  Beside& operator=(const Beside&) = delete;

  // Waits for it. Throws what it threw. Called once.
  T Get() {
    if (!thread_.joinable()) task_();
    return result_.get();
  }

 private:
  std::packaged_task<T()> task_;
  std::future<T> result_;
  std::thread thread_;
};

}  // namespace hearth
