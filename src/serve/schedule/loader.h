// The thread that looks prompts up: it waits for files and the network, so that
// passes do not.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <thread>

#include "base/mutex.h"
#include "serve/schedule/driver.h"

namespace hearth::serve {

class Loader {
 public:
  using OnFound = std::function<void(std::uint64_t, std::unique_ptr<Found>)>;

  // `backend` outlives it. `on_found` is called by the thread.
  Loader(Backend& backend, OnFound on_found);
  // Gives up what was not begun.
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // As many wait at most as run: it never refuses.
  void Post(Lookup lookup) HEARTH_EXCLUDES(mutex_);

 private:
  void Run() HEARTH_EXCLUDES(mutex_);

  Backend& backend_;
  const OnFound on_found_;
  Mutex mutex_;
  std::condition_variable_any news_;
  std::deque<Lookup> lookups_ HEARTH_GUARDED_BY(mutex_);
  bool ending_ HEARTH_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: starts when all else exists
};

}  // namespace hearth::serve
