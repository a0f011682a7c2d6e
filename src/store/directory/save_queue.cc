#include "store/directory/save_queue.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <new>
#include <thread>
#include <utility>

#include "base/start_thread.h"
#include "base/words/units.h"

namespace hearth {

struct SaveQueue::Shared {
  struct Item {
    Job job;
    std::size_t bytes = 0;
  };

  explicit Shared(std::size_t max) : bytes_max(max) {}

  bool HasRoom(std::size_t bytes) const {
    return stats.bytes_in_flight == 0 ||
           (bytes <= bytes_max && stats.bytes_in_flight <= bytes_max - bytes);
  }
  void Push(Job job, std::size_t bytes) {
    if (!has_thread) {
      ++stats.n_skipped;
      return;
    }
    stats.bytes_in_flight += bytes;
    items.push_back({std::move(job), bytes});
    ++n_enqueued;
    work.notify_one();
  }
  void Run();

  const std::size_t bytes_max;
  mutable std::mutex mutex;
  std::condition_variable work;      // an item was pushed, or the end
  std::condition_variable progress;  // an item was finished
  std::deque<Item> items;
  std::uint64_t n_enqueued = 0, n_finished = 0;
  bool ending = false;
  bool has_thread = true;
  bool failed = false;  // since the last TakeError
  bool giving_up = false;
  std::optional<Error> error;
  SaveQueueStats stats;
  std::thread thread;  // last: starts when all else exists
};

namespace {

Result<void> RunJob(const SaveQueue::Job& job) {
  try {
    return job();
  } catch (const std::bad_alloc&) {
    return {Code::kResourceFull, "no memory to save with"};
  }
}

}  // namespace

void SaveQueue::Shared::Run() {
  std::unique_lock lock(mutex);
  while (true) {
    work.wait(lock, [this] { return ending || !items.empty(); });
    if (items.empty()) return;
    Item item = std::move(items.front());
    items.pop_front();
    const bool skip = failed || giving_up;
    lock.unlock();
    Result<void> result;
    if (!skip) result = RunJob(item.job);
    item.job = nullptr;  // frees what it owns before the bytes are given back
    lock.lock();
    if (skip) {
      ++stats.n_skipped;
    } else if (result.ok()) {
      ++stats.n_done;
    } else {
      ++stats.n_failed;
      failed = true;
      error = result.error();
    }
    stats.bytes_in_flight -= item.bytes;
    ++n_finished;
    progress.notify_all();
  }
}

SaveQueue::SaveQueue(std::size_t bytes_max)
    : shared_(std::make_unique<Shared>(bytes_max)) {
  shared_->thread = TryStartThread([shared = shared_.get()] { shared->Run(); });
  if (!shared_->thread.joinable()) {
    shared_->has_thread = false;
    shared_->error =
        Error{Code::kResourceFull, "the system gives no thread to save with"};
  }
}

SaveQueue::~SaveQueue() {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->ending = true;
    shared_->work.notify_one();
  }
  if (shared_->has_thread) shared_->thread.join();
}

void SaveQueue::Enqueue(Job job, std::size_t bytes) {
  std::unique_lock lock(shared_->mutex);
  shared_->progress.wait(lock, [&] { return shared_->HasRoom(bytes); });
  shared_->Push(std::move(job), bytes);
}

bool SaveQueue::TryEnqueue(Job job, std::size_t bytes) {
  const std::lock_guard lock(shared_->mutex);
  if (!shared_->HasRoom(bytes)) {
    ++shared_->stats.n_refused;
    return false;
  }
  shared_->Push(std::move(job), bytes);
  return true;
}

void SaveQueue::Wait() {
  std::unique_lock lock(shared_->mutex);
  const std::uint64_t until = shared_->n_enqueued;
  shared_->progress.wait(lock, [&] { return shared_->n_finished >= until; });
}

Result<void> SaveQueue::Drain() {
  Wait();
  std::optional<Error> error = TakeError();
  if (error.has_value()) return *std::move(error);
  return {};
}

Result<void> SaveQueue::DrainFor(std::chrono::duration<double> limit) {
  {
    std::unique_lock lock(shared_->mutex);
    const std::uint64_t until = shared_->n_enqueued;
    const bool done = shared_->progress.wait_for(
        lock, limit, [&] { return shared_->n_finished >= until; });
    if (!done) {
      shared_->giving_up = true;
      return {Code::kCancelled, std::to_string(until - shared_->n_finished) +
                                    " saves (" +
                                    InUnits(shared_->stats.bytes_in_flight) +
                                    ") were not finished in time and are lost"};
    }
  }
  return Drain();
}

bool SaveQueue::giving_up() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->giving_up;
}

bool SaveQueue::failed() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->failed || !shared_->has_thread;
}

std::optional<Error> SaveQueue::TakeError() {
  const std::lock_guard lock(shared_->mutex);
  shared_->failed = false;
  return std::exchange(shared_->error, std::nullopt);
}

SaveQueueStats SaveQueue::stats() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->stats;
}

}  // namespace hearth
