// Who computes next: continuous batching on Engine::Step.
//
// Threads  one thread calls Run; every other function may be called by any
//          thread and returns at once. Callbacks are made by Run's thread and
//          must not wait.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hearth/engine.h"
#include "hearth/result.h"

namespace hearth::serve {

struct SchedulerOptions {
  int running_max = 8;
  int waiting_max = 64;
  double decode_share = 0.5;  // of its speed that decoding keeps
  double stall_ms = 250;      // longest silence of a running answer
};

struct JobCallbacks {
  // The prompt was found; what is left is computed next.
  std::function<void(const SyncReport&)> on_start;
  std::function<void(int tokens_done, int tokens_total)> on_prefill;
  // `choice` counts from 0; false ends that choice.
  std::function<bool(int choice, const Token&)> on_token;
  // Once a choice. An error when the job failed or was cancelled.
  std::function<void(int choice, const Result<GenerateReport>&)> on_end;
};

struct Job {
  std::vector<std::int32_t> prompt;
  std::vector<int> message_ends;  // RenderedPrompt::message_ends
  GenerateOptions options;
  int n = 1;              // answers, by forking
  std::string key_space;  // jobs of other spaces share nothing; mostly empty
  JobCallbacks callbacks;
};

using JobId = std::uint64_t;

// What is going on, for /slots, /metrics and the page.
struct JobView {
  JobId id = 0;
  enum class State : std::uint8_t {
    kWaiting,
    kMatching,
    kPrefill,
    kDecode,
    kPaused
  } state = State::kWaiting;
  int prompt_tokens = 0, reused_tokens = 0, tokens_done = 0, generated = 0;
};
struct SchedulerView {
  std::vector<JobView> jobs;
  std::uint64_t passes = 0, preemptions = 0, cancelled = 0;
  double prefill_rate = 0, decode_rate = 0;  // tokens/s, lately
};

class Scheduler {
 public:
  static std::unique_ptr<Scheduler> Make(Engine& engine,
                                         const SchedulerOptions& options);
  virtual ~Scheduler() = default;

  // kResourceFull when waiting_max wait; kInvalidArgument for a prompt that can
  // never fit.
  virtual Result<JobId> Submit(Job job) = 0;
  // Its on_end gets kCancelled within one pass; what was computed is kept.
  virtual void Cancel(JobId id) = 0;
  // A reader that does not read: its answer stands still.
  virtual void Pause(JobId id, bool paused) = 0;
  virtual SchedulerView View() const = 0;

  // Until Stop, and every job has had its end.
  virtual void Run() = 0;
  virtual void Stop() = 0;
};

}  // namespace hearth::serve
