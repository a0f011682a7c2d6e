#include "serve/schedule/driver.h"

#include <algorithm>
#include <utility>

namespace hearth::serve {
namespace {

// How often what the writer had no room for is offered again.
constexpr double kPersistMs = 500;
// How often memory is asked for again.
constexpr double kRetryMs = 5;

JobView::State StateOf(const JobState& job) {
  using State = JobView::State;
  State state = State::kWaiting;
  for (const auto& branch : job.branches) {
    switch (branch->state) {
      case Branch::State::kMatching:
        state = std::max(state, State::kMatching);
        break;
      case Branch::State::kPrefill:
        state = std::max(state, State::kPrefill);
        break;
      case Branch::State::kDecode:
        state = std::max(state, job.paused ? State::kPaused : State::kDecode);
        break;
      case Branch::State::kParked:
      case Branch::State::kOver:
        break;
    }
  }
  return state;
}

}  // namespace

Driver::Driver(Backend& backend, const SchedulerOptions& options,
               std::function<void(Lookup)> look_up)
    : backend_(backend),
      options_(options),
      look_up_(std::move(look_up)),
      planner_({.running_max = options.running_max,
                .decode_share = options.decode_share,
                .stall_ms = options.stall_ms,
                .block_tokens = backend.block_tokens(),
                .rows_max = Engine::kStepTokensMax}),
      resting_(options.resting_max, backend.has_states()) {}

Driver::~Driver() = default;

JobState* Driver::Find(JobId id) {
  const auto at = jobs_.find(id);
  return at == jobs_.end() ? nullptr : at->second.get();
}

Driver::Branches Driver::All(bool (*which)(const Branch&)) const {
  Branches all;
  for (const auto& [id, job] : jobs_) {
    for (const auto& branch : job->branches) {
      if (which(*branch)) all.push_back(branch.get());
    }
  }
  std::sort(all.begin(), all.end(),
            [](const Branch* a, const Branch* b) { return a->age < b->age; });
  return all;
}

void Driver::Add(JobId id, Job job, double submitted_ms) {
  auto state = std::make_unique<JobState>();
  state->id = id;
  state->report.prompt_tokens = static_cast<int>(job.prompt.size());
  state->job = std::move(job);
  state->submitted_ms = submitted_ms;
  waiting_.push_back(state.get());
  jobs_[id] = std::move(state);
}

void Driver::Pause(JobId id, bool paused) {
  if (JobState* job = Find(id); job != nullptr) job->paused = paused;
}

void Driver::EndBranch(Branch& branch, const Result<GenerateReport>& result) {
  if (branch.state == Branch::State::kOver) return;
  JobState& job = *branch.job;
  if (branch.sequence != nullptr) {
    branch.answer.reset();
    (void)branch.sequence->TryPersist(/*rests=*/false);
    const KvReport kv = branch.sequence->Usage();
    JobReport& report = job.report;
    report.kv_physical_bytes += kv.physical_bytes;
    if (job.started) {
      const int n_saved = std::min(kv.saved_tokens, report.prompt_tokens);
      report.written_tokens =
          std::max(report.written_tokens, n_saved - report.reused_tokens);
    }
    resting_.Add(std::move(branch.sequence), job.job.key_space,
                 backend_.NowMs());
  }
  branch.state = Branch::State::kOver;
  moved_ = true;
  job.failed |= !result.ok() && !job.cancelled;
  ++job.n_over;
  ++n_freed_;
  if (job.job.callbacks.on_end) job.job.callbacks.on_end(branch.choice, result);
}

void Driver::EndJob(JobState& job, const Error& error) {
  (error.code == Code::kCancelled ? job.cancelled : job.failed) = true;
  moved_ = true;
  std::erase(waiting_, &job);
  std::vector<bool> told(static_cast<std::size_t>(job.job.n), false);
  for (const auto& branch : job.branches) {
    told[static_cast<std::size_t>(branch->choice)] = true;
    EndBranch(*branch, error);
  }
  // Those that were never forked.
  for (int choice = 0; choice < job.job.n; ++choice) {
    if (told[static_cast<std::size_t>(choice)]) continue;
    ++job.n_over;
    if (job.job.callbacks.on_end) job.job.callbacks.on_end(choice, error);
  }
}

void Driver::End(JobId id, const Error& error) {
  if (JobState* job = Find(id); job != nullptr && job->n_over < job->job.n) {
    EndJob(*job, error);
  }
  Bury();
}

void Driver::EndAll(const Error& error) {
  for (const auto& [id, job] : jobs_) {
    if (job->n_over < job->job.n) EndJob(*job, error);
  }
  Bury();
}

// Jobs whose answers are all over are known no more.
void Driver::Bury() {
  for (auto at = jobs_.begin(); at != jobs_.end();) {
    JobState& job = *at->second;
    if (job.n_over < job.job.n) {
      ++at;
      continue;
    }
    std::erase_if(lookups_, [&](const auto& entry) {
      return entry.second.branch->job == &job;
    });
    ++(job.cancelled ? counts_.cancelled
       : job.failed  ? counts_.failed
                     : counts_.done);
    JobReport& report = job.report;
    const double now = backend_.NowMs();
    if (job.first_token_ms > 0) report.decode_ms = now - job.first_token_ms;
    if (job.job.callbacks.on_done) job.job.callbacks.on_done(report);
    const bool last =
        std::none_of(jobs_.begin(), jobs_.end(), [&](const auto& entry) {
          return entry.second.get() != &job &&
                 entry.second->job.key_space == job.job.key_space;
        });
    if (last) turn_.erase(job.job.key_space);
    at = jobs_.erase(at);
  }
}

bool Driver::Step() {
  moved_ = false;
  Admit();
  Follow();
  const bool computed = Compute();
  Bury();
  if (resting_.has_unsaved() && backend_.NowMs() - persist_ms_ >= kPersistMs) {
    persist_ms_ = backend_.NowMs();
    resting_.Persist(persist_ms_);
  }
  return computed || moved_;
}

std::optional<double> Driver::WaitMs() const {
  const auto any = [this](bool (*which)(const Branch&)) {
    return !All(which).empty();
  };
  if (any([](const Branch& b) {
        return b.state != Branch::State::kOver && b.short_since >= 0;
      })) {
    return kRetryMs;
  }
  if (resting_.has_unsaved() ||
      any([](const Branch& b) { return b.state == Branch::State::kParked; })) {
    return kPersistMs;
  }
  return std::nullopt;
}

SchedulerView Driver::View() const {
  SchedulerView view = counts_;
  view.resting = resting_.size();
  view.prefill_rate = planner_.prefill_rate();
  view.decode_rate = planner_.decode_rate();
  for (const auto& [id, job] : jobs_) {
    int done = 0;
    for (const auto& branch : job->branches) {
      done =
          std::max(done, branch->answer != nullptr ? job->report.prompt_tokens
                                                   : branch->at);
    }
    view.jobs.push_back({.id = id,
                         .state = StateOf(*job),
                         .prompt_tokens = job->report.prompt_tokens,
                         .reused_tokens = job->report.reused_tokens,
                         .tokens_done = done,
                         .generated = job->generated,
                         .preemptions = job->report.preemptions});
  }
  return view;
}

}  // namespace hearth::serve
