#include "base/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace hearth {
namespace {

constexpr auto kSpin = std::chrono::microseconds(50);

void CpuRelax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Quota in CPUs from a cgroup v2 or v1 limit; 0 when there is none.
double CgroupCpuQuota() {
  std::ifstream v2("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period = 0;
  if (v2 >> quota >> period) {
    if (quota == "max" || period <= 0) return 0;
    return std::atof(quota.c_str()) / period;
  }
  std::ifstream v1_quota("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
  std::ifstream v1_period("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  double q = 0;
  if (v1_quota >> q && v1_period >> period && q > 0 && period > 0) {
    return q / period;
  }
  return 0;
}

}  // namespace

int AvailableCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  int n = 1;
  if (::sched_getaffinity(0, sizeof(set), &set) == 0) n = CPU_COUNT(&set);
  const double quota = CgroupCpuQuota();
  if (quota > 0) n = std::min(n, std::max(1, static_cast<int>(quota + 0.5)));
  return std::max(1, n);
}

struct ThreadPool::Shared {
  std::mutex mutex;
  std::condition_variable wake;
  std::atomic<std::uint64_t> generation{0};
  std::atomic<bool> stop{false};
  std::atomic<int> n_sleeping{0};

  const std::function<void(std::int64_t, int)>* task = nullptr;
  std::int64_t n_tasks = 0;
  alignas(64) std::atomic<std::int64_t> next{0};
  alignas(64) std::atomic<int> n_busy{0};
  std::vector<std::thread> workers;

  void Drain(int thread) {
    while (true) {
      const std::int64_t i = next.fetch_add(1, std::memory_order_relaxed);
      if (i >= n_tasks) return;
      (*task)(i, thread);
    }
  }

  // Waits until `generation` differs from `seen`, spinning first.
  void AwaitWork(std::uint64_t seen) {
    const auto deadline = std::chrono::steady_clock::now() + kSpin;
    while (true) {
      for (int i = 0; i < 64; ++i) {
        if (generation.load(std::memory_order_acquire) != seen || stop) return;
        CpuRelax();
      }
      if (std::chrono::steady_clock::now() >= deadline) break;
    }
    std::unique_lock lock(mutex);
    n_sleeping.fetch_add(1);
    wake.wait(lock, [&] { return generation.load() != seen || stop; });
    n_sleeping.fetch_sub(1);
  }

  void Work(int thread) {
    std::uint64_t seen = 0;
    while (true) {
      AwaitWork(seen);
      if (stop) return;
      seen = generation.load(std::memory_order_acquire);
      Drain(thread);
      n_busy.fetch_sub(1, std::memory_order_release);
    }
  }
};

ThreadPool::ThreadPool(int n_threads)
    : n_threads_(n_threads > 0 ? n_threads : AvailableCpus()),
      shared_(std::make_unique<Shared>()) {
  for (int t = 1; t < n_threads_; ++t) {
    shared_->workers.emplace_back([this, t] { shared_->Work(t); });
  }
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard lock(shared_->mutex);
    shared_->stop = true;
  }
  shared_->wake.notify_all();
  for (std::thread& worker : shared_->workers) worker.join();
}

void ThreadPool::ParallelFor(
    std::int64_t n_tasks, const std::function<void(std::int64_t, int)>& task) {
  if (n_threads_ == 1 || n_tasks <= 1) {
    for (std::int64_t i = 0; i < n_tasks; ++i) task(i, 0);
    return;
  }
  Shared& s = *shared_;
  s.task = &task;
  s.n_tasks = n_tasks;
  s.next.store(0, std::memory_order_relaxed);
  s.n_busy.store(n_threads_ - 1, std::memory_order_relaxed);
  {
    // Under the mutex, so that a worker between its test and its wait cannot
    // miss the change.
    std::lock_guard lock(s.mutex);
    s.generation.fetch_add(1, std::memory_order_release);
  }
  if (s.n_sleeping.load() > 0) s.wake.notify_all();
  s.Drain(0);
  int spins = 0;
  while (s.n_busy.load(std::memory_order_acquire) > 0) {
    // A worker may have lost its CPU to another program: give ours away
    // rather than burn it.
    if (++spins > 4096) {
      std::this_thread::yield();
    } else {
      CpuRelax();
    }
  }
}

}  // namespace hearth
