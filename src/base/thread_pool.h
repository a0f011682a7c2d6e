// A fixed set of threads that run one parallel loop at a time.
//
// Threads  ParallelFor may be called from one thread at a time. The caller
//          takes part in the work. Workers spin for a short while after a loop
//          and then sleep, so that back-to-back loops cost microseconds and an
//          idle program costs nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace hearth {

class ThreadPool {
 public:
  // `n_threads` counts the caller; 0 means AvailableCpus().
  explicit ThreadPool(int n_threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int n_threads() const { return n_threads_; }

  // Calls task(index, thread) once for every index in [0, n_tasks), in any
  // order, `thread` in [0, n_threads). Returns when all are done.
  void ParallelFor(std::int64_t n_tasks,
                   const std::function<void(std::int64_t, int)>& task);

 private:
  struct Shared;
  int n_threads_;
  std::unique_ptr<Shared> shared_;
};

// Processors this process may use: the affinity mask, lowered by a container's
// CPU quota. At least 1.
int AvailableCpus();

}  // namespace hearth
