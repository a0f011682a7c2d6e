// A few threads that parse, render and tokenise, so that neither sockets nor
// forward steps wait for it.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace hearth::serve {

class Workers {
 public:
  explicit Workers(int n_threads);
  ~Workers();  // what was given is done first

  // Any thread; returns at once. Each request waits here once at most, so the
  // line is as short as there are connections.
  void Do(std::function<void()> work);

 private:
  void Run();

  std::mutex mutex_;
  std::condition_variable more_;
  std::deque<std::function<void()>> line_;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace hearth::serve
