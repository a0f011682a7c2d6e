// A fixed set of threads that run one parallel loop at a time.
//
// A loop never waits for a worker that has not begun: one that sleeps, or has
// lost its processor to another program, just misses the loop, and the others
// do its share.
//
// Threads  ParallelFor and UseThreads may be called from one thread at a time.
//          The caller takes part in the work. Workers spin for a short while
//          after a loop and then sleep, so that back-to-back loops cost
//          microseconds and an idle program costs nothing.
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

  // How many there are: bounds the `thread` that tasks see.
  int n_threads() const { return n_threads_; }
  // How many take part in loops, the caller included.
  int n_used() const { return n_used_; }
  // From the next loop on `n` threads take part, 1 to n_threads().
  void UseThreads(int n);

  // Calls task(index, thread) once for every index in [0, n_tasks), in any
  // order, `thread` in [0, n_threads). Returns when all are done. When a task
  // throws, as for want of memory, some may not be called, and the first
  // exception is thrown again once nobody is inside a task.
  void ParallelFor(std::int64_t n_tasks,
                   const std::function<void(std::int64_t, int)>& task);

 private:
  struct Shared;
  int n_threads_;
  int n_used_;
  std::unique_ptr<Shared> shared_;
};

// Processors this process may use: the affinity mask, lowered by the CPU quotas
// of the control groups it is in. At least 1.
int AvailableCpus();

}  // namespace hearth
