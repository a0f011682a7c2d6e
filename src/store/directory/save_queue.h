// One background thread that runs save jobs in order, so that saving never
// delays a token.
//
// Threads  every call may be made from any thread; jobs run one at a time, in
//          the order of Enqueue, on the queue's own thread. A job must not
//          Drain its own queue.
// Limits   at most `bytes_max` bytes wait or run; a single job larger than that
//          is taken when the queue is empty. TryEnqueue refuses beyond it,
//          Enqueue waits.
// Deadline DrainFor gives up what has not been written in time: jobs that wait
// are
//          dropped, a job that runs should look at giving_up() between its
//          parts.
// Errors   without memory or a thread a job fails, the program goes on. After a
//          job failed, the jobs behind it are skipped until TakeError:
//          blocks form chains, and what stands after a lost block could not be
//          found. So one full disk makes one error, not thousands.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "hearth/result.h"

namespace hearth {

inline constexpr std::size_t kSaveQueueBytesMax = std::size_t{256} << 20;

struct SaveQueueStats {
  std::uint64_t n_done = 0, n_failed = 0;
  std::uint64_t n_skipped = 0;  // behind a failed one
  std::uint64_t n_refused = 0;  // by TryEnqueue
  std::size_t bytes_in_flight = 0;
};

class SaveQueue {
 public:
  using Job = std::function<Result<void>()>;

  explicit SaveQueue(std::size_t bytes_max = kSaveQueueBytesMax);
  // Runs what is still queued, then ends the thread.
  ~SaveQueue();
  SaveQueue(const SaveQueue&) = delete;
  SaveQueue& operator=(const SaveQueue&) = delete;

  // `bytes`: memory that the job keeps alive. The job is destroyed, with what
  // it owns, as soon as it has run or been skipped.
  void Enqueue(Job job, std::size_t bytes);
  // False, and nothing happens, when the queue has no room now.
  [[nodiscard]] bool TryEnqueue(Job job, std::size_t bytes);

  // Waits until everything enqueued before this call has run.
  void Wait();
  // The same, then as TakeError.
  Result<void> Drain();

  // The same for at most `limit`. kCancelled, saying how much is lost, when it
  // was not enough; then the queue takes its last jobs without running them.
  Result<void> DrainFor(std::chrono::duration<double> limit);
  bool giving_up() const;

  // The first error since the last call, once; jobs run again afterwards.
  std::optional<Error> TakeError();
  // Whether an error waits to be taken, and jobs are skipped.
  bool failed() const;

  SaveQueueStats stats() const;

 private:
  struct Shared;
  std::unique_ptr<Shared> shared_;
};

}  // namespace hearth
