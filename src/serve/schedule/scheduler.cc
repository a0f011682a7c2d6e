#include "serve/schedule/scheduler.h"

#include <algorithm>
#include <condition_variable>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "serve/schedule/driver.h"
#include "serve/schedule/engine_backend.h"
#include "serve/schedule/loader.h"

namespace hearth::serve {
namespace {

constexpr int kAnswersMax = 8;
constexpr double kShareMax = 0.95;

class SchedulerImpl final : public Scheduler {
 public:
  SchedulerImpl(Engine& engine, const SchedulerOptions& options)
      : engine_(engine),
        options_(options),
        backend_(MakeEngineBackend(engine)),
        driver_(*backend_, options,
                [this](Lookup lookup) { loader_.Post(std::move(lookup)); }),
        loader_(*backend_, [this](std::uint64_t id, std::unique_ptr<Found> f) {
          Post([id,
                found = std::make_shared<std::unique_ptr<Found>>(std::move(f))](
                   Driver& driver) { driver.Matched(id, std::move(*found)); });
        }) {}

  Result<JobId> Submit(Job job) override;
  void Cancel(JobId id) override {
    Post([id](Driver& driver) {
      driver.End(id, {Code::kCancelled, "the request was cancelled"});
    });
  }
  void Pause(JobId id, bool paused) override {
    Post([id, paused](Driver& driver) { driver.Pause(id, paused); });
  }
  SchedulerView View() const override {
    const MutexLock lock(mutex_);
    return view_;
  }
  void Run() override;
  void Stop() override {
    const MutexLock lock(mutex_);
    stopping_ = true;
    news_.notify_all();
  }

 private:
  using Command = std::function<void(Driver&)>;

  Result<void> Check(const Job& job) const;
  void Post(Command command) HEARTH_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    commands_.push_back(std::move(command));
    news_.notify_all();
  }
  // What was asked for since the last call. Waits for it when there is nothing
  // to compute.
  std::vector<Command> TakeCommands(bool may_wait) HEARTH_EXCLUDES(mutex_);
  void Publish() HEARTH_EXCLUDES(mutex_);

  Engine& engine_;
  const SchedulerOptions options_;
  const std::unique_ptr<Backend> backend_;
  Driver driver_;  // Run's thread only

  mutable Mutex mutex_;
  std::condition_variable_any news_;
  std::vector<Command> commands_ HEARTH_GUARDED_BY(mutex_);
  SchedulerView view_ HEARTH_GUARDED_BY(mutex_);
  int n_waiting_ HEARTH_GUARDED_BY(mutex_) = 0;    // at the last look
  int n_submitted_ HEARTH_GUARDED_BY(mutex_) = 0;  // since then
  int n_taken_ HEARTH_GUARDED_BY(mutex_) = 0;  // of these: the driver has them
  JobId n_jobs_ HEARTH_GUARDED_BY(mutex_) = 0;
  bool stopping_ HEARTH_GUARDED_BY(mutex_) = false;

  Loader loader_;  // last: its thread uses the rest
};

Result<void> SchedulerImpl::Check(const Job& job) const {
  if (job.prompt.empty()) {
    return {Code::kInvalidArgument,
            "the prompt is empty; give at least one token of text"};
  }
  const auto n_tokens = static_cast<int>(job.prompt.size());
  if (n_tokens > engine_.context_tokens()) {
    return {Code::kInvalidArgument,
            "the prompt has " + std::to_string(n_tokens) +
                " tokens and the context holds " +
                std::to_string(engine_.context_tokens()) +
                "; shorten it or choose a larger context"};
  }
  const int n_vocab = engine_.info().vocab_size;
  for (const std::int32_t id : job.prompt) {
    if (id < 0 || id >= n_vocab) {
      return {Code::kInvalidArgument,
              "token id " + std::to_string(id) +
                  " is outside the model's vocabulary of " +
                  std::to_string(n_vocab)};
    }
  }
  const int n_most = std::min(kAnswersMax, options_.running_max);
  if (job.n < 1 || job.n > n_most) {
    return {Code::kInvalidArgument,
            "a request for " + std::to_string(job.n) + " answers; 1 to " +
                std::to_string(n_most) + " are possible"};
  }
  if (!engine_.CanHold(n_tokens)) {
    return {Code::kInvalidArgument,
            "a prompt of " + std::to_string(n_tokens) +
                " tokens does not fit into the KV memory budget; shorten it or "
                "raise the budget"};
  }
  return CheckGenerate(job.options, n_vocab);
}

Result<JobId> SchedulerImpl::Submit(Job job) {
  HEARTH_TRY(Check(job));
  const double now = backend_->NowMs();
  const MutexLock lock(mutex_);
  if (stopping_) return {Code::kResourceFull, "the server stops"};
  if (n_waiting_ + n_submitted_ >= options_.waiting_max) {
    return {Code::kResourceFull,
            std::to_string(options_.waiting_max) +
                " requests are waiting already; try again later"};
  }
  const JobId id = ++n_jobs_;
  ++n_submitted_;
  commands_.push_back(
      [id, now, shared = std::make_shared<Job>(std::move(job))](
          Driver& driver) { driver.Add(id, std::move(*shared), now); });
  news_.notify_all();
  return id;
}

std::vector<SchedulerImpl::Command> SchedulerImpl::TakeCommands(bool may_wait) {
  const auto wait_ms = driver_.WaitMs();
  const MutexLock lock(mutex_);
  if (may_wait && commands_.empty() && !stopping_) {
    if (wait_ms.has_value()) {
      (void)news_.wait_for(mutex_,
                           std::chrono::duration<double, std::milli>(*wait_ms));
    } else {
      while (commands_.empty() && !stopping_) news_.wait(mutex_);
    }
  }
  n_taken_ = n_submitted_;
  return std::exchange(commands_, {});
}

void SchedulerImpl::Publish() {
  SchedulerView view = driver_.View();
  const MutexLock lock(mutex_);
  view_ = std::move(view);
  n_waiting_ = driver_.n_waiting();
  n_submitted_ -= n_taken_;
  n_taken_ = 0;
}

void SchedulerImpl::Run() {
  bool computed = true;
  while (true) {
    for (const Command& command : TakeCommands(!computed)) command(driver_);
    bool stopping = false;
    {
      const MutexLock lock(mutex_);
      stopping = stopping_ && commands_.empty();
    }
    if (stopping) {
      driver_.EndAll({Code::kCancelled, "the server stops"});
      driver_.Settle();
      Publish();
      return;
    }
    computed = driver_.Step();
    Publish();
  }
}

}  // namespace

std::unique_ptr<Scheduler> Scheduler::Make(Engine& engine,
                                           const SchedulerOptions& options) {
  SchedulerOptions checked = options;
  checked.running_max = std::max(1, options.running_max);
  checked.waiting_max = std::max(1, options.waiting_max);
  checked.resting_max = std::max(0, options.resting_max);
  checked.decode_share = std::clamp(options.decode_share, 0.0, kShareMax);
  return std::make_unique<SchedulerImpl>(engine, checked);
}

}  // namespace hearth::serve
