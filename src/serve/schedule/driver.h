// Takes jobs from their beginning to their end, one pass at a time: the one
// thread's part of a scheduler. What goes into a pass is the Planner's affair.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "serve/schedule/backend.h"
#include "serve/schedule/job_state.h"
#include "serve/schedule/plan.h"
#include "serve/schedule/resting.h"
#include "serve/schedule/scheduler.h"

namespace hearth::serve {

// A lookup for another thread to make: Backend::Find.
struct Lookup {
  std::uint64_t id = 0;
  std::vector<std::int32_t> tokens;
  int n_held = 0;
  std::string key_space;
};

class Driver {
 public:
  // `backend` outlives it. `look_up` must not wait; the answer is Matched.
  Driver(Backend& backend, const SchedulerOptions& options,
         std::function<void(Lookup)> look_up);
  ~Driver();

  void Add(JobId id, Job job, double submitted_ms);
  // All its answers end with `error`.
  void End(JobId id, const Error& error);
  void EndAll(const Error& error);
  // Nobody will ask any more: hands over all that rests.
  void Settle() { resting_.Settle(); }
  void Pause(JobId id, bool paused);
  void Matched(std::uint64_t lookup, std::unique_ptr<Found> found);

  // One pass, and all that can be done without one. False: nothing was done,
  // nor will be without a call or time.
  bool Step();
  // Until Step may do more, though nothing is called before; nothing: never.
  std::optional<double> WaitMs() const;

  bool empty() const { return jobs_.empty(); }
  int n_waiting() const { return static_cast<int>(waiting_.size()); }
  SchedulerView View() const;

 private:
  friend class DriverProbe;  // the simulation looks at everything

  using Branches = std::vector<Branch*>;
  struct Part {
    Branch* branch;
    std::vector<std::int32_t> tokens;
    StepLogits want;
  };

  struct UnderWay {
    Branch* branch;
    int n_held;
  };

  JobState* Find(JobId id);
  Branches All(bool (*which)(const Branch&)) const;

  // driver_admit.cc: from the line to the first computed token.
  void Admit();
  void Start(JobState& job);
  bool Return();
  void BeginMatch(Branch& branch);
  void Attach(Branch& branch, std::unique_ptr<Found> found);
  void FindLeader(Branch& branch);
  void Follow();
  void TellStart(JobState& job, const SyncReport& report);

  // driver_pass.cc: a pass.
  PlanItem ItemOf(const Branch& branch) const;
  bool Compute();
  std::vector<Part> Reserved(const Branches& ready, const Pass& pass);
  void Run(std::vector<Part> parts);
  void RunAlone(const std::vector<Part>& parts, std::vector<Part>& done);
  void AfterPrefill(Branch& branch, int n);
  void BeginAnswers(Branch& branch);
  void BeginAnswer(Branch& branch);
  void Advance(Branch& branch);
  Branch* Reader() const;
  bool Read(Branch& branch, int n_tokens, bool others_decode);

  // driver_memory.cc: who gets memory, and who gives way.
  bool Reserve(Branch& branch, int n_tokens);
  void MakeWay(const Error& refusal);
  void Park(Branch& branch);

  // Ends.
  void EndBranch(Branch& branch, const Result<GenerateReport>& result);
  void EndJob(JobState& job, const Error& error);
  void Bury();

  Backend& backend_;
  const SchedulerOptions options_;
  const std::function<void(Lookup)> look_up_;
  Planner planner_;
  Resting resting_;
  std::map<JobId, std::unique_ptr<JobState>> jobs_;
  std::deque<JobState*> waiting_;
  std::map<std::string, std::uint64_t> turn_;  // by key space: last admitted
  std::map<std::uint64_t, UnderWay> lookups_;
  std::uint64_t n_lookups_ = 0, n_admitted_ = 0;
  std::uint64_t n_freed_ = 0;   // times that memory may have become free
  double short_last_ = -1e300;  // when memory was missing last
  double persist_ms_ = 0;       // when unsaved ones were last tried
  std::uint64_t reader_ = 0;    // age of the one that reads; 0: nobody
  bool read_last_ = false;      // in the place of prompts
  bool moved_ = false;          // somebody ended or gave way in this Step
  SchedulerView counts_;
};

}  // namespace hearth::serve
