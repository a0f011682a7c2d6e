// Who computes next: continuous batching on Engine::Step (docs/scheduler.md).
//
// Threads  one thread calls Run; every other function may be called by any
//          thread and returns at once. Callbacks are made by Run's thread and
//          must not wait; they may call every function but Run.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "hearth/engine.h"
#include "hearth/result.h"

namespace hearth::serve {

struct SchedulerOptions {
  int running_max = 8;           // answers, those of one job counted each
  int waiting_max = 64;          // jobs
  double decode_share = 0.5;     // of its speed that decoding keeps; below 1
  double stall_ms = 250;         // longest silence of a running answer
  double memory_wait_ms = 2000;  // for the writer, before an answer gives way
  int resting_max = 64;          // ended conversations that are kept in memory
};

// What a job cost: prompt_tokens = reused_tokens + computed_tokens.
struct JobReport {
  int prompt_tokens = 0;
  int reused_tokens = 0;
  int computed_tokens = 0;
  int written_tokens = 0;  // of computed: handed to the prompt cache
  int preemptions = 0;     // times that memory was taken from it
  double queue_ms = 0;     // from Submit to the lookup
  double lookup_ms = 0;    // finding, verifying and mapping
  double prefill_ms = 0;   // from there to the first token
  double ttft_ms = 0;      // from Submit to the first token
  double decode_ms = 0;    // from the first token to the end
  std::uint64_t kv_physical_bytes = 0;  // at the end, of all its answers
};

struct JobCallbacks {
  // The prompt was found; what is left is computed next. Once, unless the job
  // ended before.
  std::function<void(const SyncReport&)> on_start = {};
  // After each pass that computed some of the prompt.
  std::function<void(int tokens_done, int tokens_total)> on_prefill = {};
  // `choice` counts from 0; false ends that choice.
  std::function<bool(int choice, const Token&)> on_token = {};
  // Once a choice. An error when the job failed or was cancelled.
  std::function<void(int choice, const Result<GenerateReport>&)> on_end = {};
  // Once, after the last on_end: the scheduler knows the job no more.
  std::function<void(const JobReport&)> on_done = {};
};

struct Job {
  std::vector<std::int32_t> prompt = {};
  // Numbers of leading tokens, rising, where the prompt is saved to the token
  // (cache breakpoints); elsewhere whole blocks and the end are.
  std::vector<int> save_points = {};
  // The same, where messages end that no control token shows (Session::Sync).
  std::vector<int> marks = {};
  // Choice i draws with options.sampling.seed + i.
  GenerateOptions options = {};
  int n = 1;  // answers, by forking; at most running_max
  std::string key_space =
      {};  // jobs of other spaces share nothing; mostly empty
  JobCallbacks callbacks = {};
};

using JobId = std::uint64_t;

// What is going on, for /slots, /metrics and the page.
struct JobView {
  JobId id = 0;
  enum class State : std::uint8_t {
    kWaiting,   // in line, or preempted and in line again
    kMatching,  // looked for in memory and on disk
    kPrefill,
    kDecode,
    kPaused
  } state = State::kWaiting;
  int prompt_tokens = 0;
  int reused_tokens = 0;
  int tokens_done = 0;  // of the prompt, reused ones too
  int generated = 0;    // of all choices
  int preemptions = 0;
};
struct SchedulerView {
  std::vector<JobView> jobs;  // in the order of Submit
  int resting = 0;            // conversations in memory that nobody asks now
  std::uint64_t passes = 0, mixed_passes = 0, rows = 0;
  std::uint64_t done = 0, failed = 0, cancelled = 0;
  std::uint64_t preempted_prefills = 0, preempted_decodes = 0;
  std::uint64_t prompt_tokens = 0, reused_tokens = 0, generated_tokens = 0;
  double prefill_rate = 0, decode_rate = 0;  // tokens/s, lately
};

class Scheduler {
 public:
  // `engine` outlives the object.
  static std::unique_ptr<Scheduler> Make(Engine& engine,
                                         const SchedulerOptions& options);
  virtual ~Scheduler() = default;

  // kResourceFull when waiting_max wait or after Stop; kInvalidArgument for
  // what can never be answered: an empty prompt, foreign ids, a prompt beyond
  // the context or the memory budget, options out of range.
  virtual Result<JobId> Submit(Job job) = 0;
  // Its on_end gets kCancelled within one pass; what was computed is kept.
  // Nothing happens when the job has ended.
  virtual void Cancel(JobId id) = 0;
  // A reader that does not read: its answer stands still.
  virtual void Pause(JobId id, bool paused) = 0;
  virtual SchedulerView View() const = 0;

  // Until Stop, and every job has had its end.
  virtual void Run() = 0;
  // Ends every job as Cancel does, and then Run. What is saved is complete
  // after Engine::DrainSaves.
  virtual void Stop() = 0;
};

}  // namespace hearth::serve
