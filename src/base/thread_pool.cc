#include "base/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <exception>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/start_thread.h"

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

// CPUs that one control group of version 2 grants; 0: no limit.
double QuotaOf(const std::string& folder) {
  std::ifstream file(folder + "/cpu.max");
  std::string quota;
  double period = 0;
  if (!(file >> quota >> period) || quota == "max" || period <= 0) return 0;
  return std::atof(quota.c_str()) / period;
}

// The same of version 1.
double QuotaOfV1(const std::string& folder) {
  std::ifstream quota_file(folder + "/cpu.cfs_quota_us");
  std::ifstream period_file(folder + "/cpu.cfs_period_us");
  double quota = 0, period = 0;
  if (!(quota_file >> quota) || !(period_file >> period)) return 0;
  return quota > 0 && period > 0 ? quota / period : 0;
}

// The tightest quota of the group this process is in and of those above it;
// 0: none. In a container the group seen as the root is the container's.
double CgroupCpuQuota() {
  double tightest = 0;
  const auto take = [&](double quota) {
    if (quota > 0 && (tightest == 0 || quota < tightest)) tightest = quota;
  };
  std::string line, own;
  for (std::ifstream groups("/proc/self/cgroup"); std::getline(groups, line);) {
    if (line.starts_with("0::/")) own = line.substr(3);
  }
  while (!own.empty()) {
    take(QuotaOf("/sys/fs/cgroup" + own));
    own.erase(own.rfind('/'));
  }
  take(QuotaOf("/sys/fs/cgroup"));
  take(QuotaOfV1("/sys/fs/cgroup/cpu"));
  return tightest;
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

// One loop after the other goes through `state`: the loop's number, whether
// workers may still join, and how many are in. A worker joins by
// compare-and-swap, so the caller can close a loop and knows that nobody
// touches its task any more once the count is zero.
struct ThreadPool::Shared {
  static constexpr std::uint64_t kCountMask = (1 << 15) - 1;
  static constexpr std::uint64_t kOpen = 1 << 15;
  static constexpr int kLoopShift = 16;

  alignas(64) std::atomic<std::uint64_t> state{0};
  // Each thread that takes part has a run of neighbouring tasks: what it reads
  // is mostly one stretch of memory, which prefetching likes. When it is
  // through it helps the others with theirs.
  struct alignas(64) Run {
    std::atomic<std::int64_t> next{0};
    std::int64_t end = 0;
  };
  alignas(64) const std::function<void(std::int64_t, int)>* task = nullptr;
  std::vector<Run> runs;  // [n_threads]
  int n_runs = 1;         // of this loop

  alignas(64) std::atomic<int> n_sleeping{0};
  std::atomic<int> n_used{1};
  std::atomic<bool> stop{false};
  std::mutex mutex;
  std::condition_variable wake;   // a new loop, or the end
  std::condition_variable admit;  // n_used has changed, or the end
  std::vector<std::thread> workers;
  std::exception_ptr failure;  // of this loop: the first task that threw

  static std::uint64_t LoopOf(std::uint64_t s) { return s >> kLoopShift; }

  void Drain(int thread) {
    try {
      for (int k = 0; k < n_runs; ++k) {
        Run& run = runs[static_cast<std::size_t>((thread + k) % n_runs)];
        while (true) {
          const std::int64_t i =
              run.next.fetch_add(1, std::memory_order_relaxed);
          if (i >= run.end) break;
          (*task)(i, thread);
        }
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
    }
  }

  // Waits until there is another loop than `seen`, spinning first.
  void AwaitLoop(std::uint64_t seen) {
    const auto deadline = std::chrono::steady_clock::now() + kSpin;
    while (true) {
      for (int i = 0; i < 64; ++i) {
        if (LoopOf(state.load(std::memory_order_acquire)) != seen || stop) {
          return;
        }
        CpuRelax();
      }
      if (std::chrono::steady_clock::now() >= deadline) break;
    }
    std::unique_lock lock(mutex);
    // Either the caller sees this or the test below sees its new loop.
    n_sleeping.fetch_add(1);
    wake.wait(lock, [&] { return LoopOf(state.load()) != seen || stop; });
    n_sleeping.fetch_sub(1);
  }

  void AwaitAdmission(int thread) {
    if (thread < n_used.load(std::memory_order_relaxed)) return;
    std::unique_lock lock(mutex);
    admit.wait(lock, [&] { return thread < n_used.load() || stop; });
  }

  void Work(int thread) {
    std::uint64_t seen = 0;
    while (true) {
      AwaitAdmission(thread);
      AwaitLoop(seen);
      if (stop) return;
      // While it waited, its turn may have ended.
      if (thread >= n_used.load(std::memory_order_relaxed)) continue;
      std::uint64_t s = state.load(std::memory_order_acquire);
      seen = LoopOf(s);
      while ((s & kOpen) != 0 && LoopOf(s) == seen) {
        if (!state.compare_exchange_weak(s, s + 1, std::memory_order_acq_rel)) {
          continue;
        }
        Drain(thread);
        state.fetch_sub(1, std::memory_order_release);
        break;
      }
    }
  }
};

ThreadPool::ThreadPool(int n_threads)
    : n_threads_(n_threads > 0 ? n_threads : AvailableCpus()),
      n_used_(n_threads_),
      shared_(std::make_unique<Shared>()) {
  shared_->n_used = n_used_;
  shared_->runs =
      std::vector<Shared::Run>(static_cast<std::size_t>(n_threads_));
  // A worker that the system refuses is one that never joins a loop: its share
  // is done by the others.
  shared_->workers.reserve(static_cast<std::size_t>(n_threads_ - 1));
  for (int t = 1; t < n_threads_; ++t) {
    std::thread worker = TryStartThread([this, t] { shared_->Work(t); });
    if (!worker.joinable()) break;
    shared_->workers.push_back(std::move(worker));
  }
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard lock(shared_->mutex);
    shared_->stop = true;
  }
  shared_->wake.notify_all();
  shared_->admit.notify_all();
  for (std::thread& worker : shared_->workers) worker.join();
}

void ThreadPool::UseThreads(int n) {
  n = std::clamp(n, 1, n_threads_);
  if (n == n_used_) return;
  n_used_ = n;
  {
    std::lock_guard lock(shared_->mutex);
    shared_->n_used = n;
  }
  shared_->admit.notify_all();
}

void ThreadPool::ParallelFor(
    std::int64_t n_tasks, const std::function<void(std::int64_t, int)>& task) {
  if (n_used_ == 1 || n_tasks <= 1) {
    for (std::int64_t i = 0; i < n_tasks; ++i) task(i, 0);
    return;
  }
  Shared& s = *shared_;
  // The last loop is closed and empty: nobody looks at these.
  s.task = &task;
  s.n_runs = n_used_;
  for (int t = 0; t < n_used_; ++t) {
    Shared::Run& run = s.runs[static_cast<std::size_t>(t)];
    run.next.store(n_tasks * t / n_used_, std::memory_order_relaxed);
    run.end = n_tasks * (t + 1) / n_used_;
  }
  const std::uint64_t loop = Shared::LoopOf(s.state.load()) + 1;
  s.state.store(loop << Shared::kLoopShift | Shared::kOpen);
  if (s.n_sleeping.load() > 0) {
    // A worker between its test and its wait holds the mutex.
    { std::lock_guard lock(s.mutex); }
    s.wake.notify_all();
  }
  s.Drain(0);
  s.state.fetch_and(~Shared::kOpen, std::memory_order_acq_rel);
  int spins = 0;
  while ((s.state.load(std::memory_order_acquire) & Shared::kCountMask) != 0) {
    // A worker may have lost its processor in the middle of a task: give ours
    // away rather than burn it.
    if (++spins > 4096) {
      std::this_thread::yield();
    } else {
      CpuRelax();
    }
  }
  // Everybody is out, so that nobody else looks at it.
  if (s.failure) std::rethrow_exception(std::exchange(s.failure, nullptr));
}

}  // namespace hearth
