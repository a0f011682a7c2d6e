// A scheduler with a thread that runs it, and what its jobs were told.
#pragma once

#include <gtest/gtest.h>

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "hearth/engine.h"
#include "serve/schedule/scheduler.h"

namespace hearth::serve {

using TokenIds = std::vector<std::int32_t>;

inline std::unique_ptr<Engine> OpenEngine(const EngineOptions& options) {
  auto engine = Engine::Open(options);
  EXPECT_TRUE(engine.ok()) << engine.error().message;
  return engine.ok() ? std::move(*engine) : nullptr;
}

inline int Pick(std::mt19937& rng, int low, int high) {
  return low + static_cast<int>(rng() % static_cast<unsigned>(high - low + 1));
}

inline TokenIds RandomTokens(std::mt19937& rng, int n, int n_vocab = 500) {
  TokenIds ids;
  for (int i = 0; i < n; ++i) ids.push_back(Pick(rng, 3, n_vocab - 1));
  return ids;
}

// One answer: ids, and the log probability of each, which has the bits of the
// logits in it.
struct Heard {
  TokenIds ids;
  std::vector<double> logprobs;
  std::string text;
  bool operator==(const Heard&) const = default;
};

struct Outcome {
  std::vector<SyncReport> starts;
  std::map<int, Heard> answers;
  std::map<int, Result<GenerateReport>> ends;
  std::vector<JobReport> done;
};

class Served {
 public:
  Served(Engine& engine, const SchedulerOptions& options)
      : scheduler_(Scheduler::Make(engine, options)),
        thread_([this] { scheduler_->Run(); }) {}
  ~Served() { Stop(); }

  Scheduler& operator*() { return *scheduler_; }
  Scheduler* operator->() { return scheduler_.get(); }

  // `on_token` is called too, with the job's id.
  JobId Ask(Job job, const std::function<void(JobId, int)>& on_token = {}) {
    auto outcome = std::make_shared<Outcome>();
    auto id = std::make_shared<JobId>(0);
    job.callbacks.on_start = [=, this](const SyncReport& report) {
      const std::lock_guard lock(mutex_);
      outcome->starts.push_back(report);
    };
    job.callbacks.on_token = [=, this](int choice, const Token& token) {
      JobId known = 0;
      {
        const std::lock_guard lock(mutex_);
        known = *id;
        Heard& heard = outcome->answers[choice];
        heard.text += token.text;
        if (token.id >= 0) {
          heard.ids.push_back(token.id);
          heard.logprobs.push_back(token.logprob);
        }
      }
      if (on_token) on_token(known, choice);
      return true;
    };
    job.callbacks.on_end = [=, this](int choice,
                                     const Result<GenerateReport>& result) {
      const std::lock_guard lock(mutex_);
      EXPECT_TRUE(outcome->done.empty());
      EXPECT_TRUE(outcome->ends.emplace(choice, result).second)
          << "a choice ends once";
    };
    job.callbacks.on_done = [=, this](const JobReport& report) {
      const std::lock_guard lock(mutex_);
      outcome->done.push_back(report);
      ended_.notify_all();
    };
    const std::lock_guard lock(mutex_);
    const auto submitted = scheduler_->Submit(std::move(job));
    EXPECT_TRUE(submitted.ok()) << submitted.error().message;
    if (!submitted.ok()) return 0;
    *id = *submitted;
    outcomes_[*id] = outcome;
    return *id;
  }

  // Waits for its end.
  Outcome Await(JobId id) {
    std::unique_lock lock(mutex_);
    const auto& outcome = *outcomes_.at(id);
    ended_.wait(lock, [&] { return !outcome.done.empty(); });
    return outcome;
  }

  void Stop() {
    if (!thread_.joinable()) return;
    scheduler_->Stop();
    thread_.join();
  }

 private:
  std::unique_ptr<Scheduler> scheduler_;
  std::mutex mutex_;
  std::condition_variable ended_;
  std::map<JobId, std::shared_ptr<Outcome>> outcomes_;
  std::thread thread_;  // last
};

// What the same request gives when nobody else is there and nothing is cached.
inline Heard Alone(const EngineOptions& options, const Job& job,
                   int choice = 0) {
  EngineOptions bare = options;
  bare.prompt_cache_dir.clear();
  bare.kv_ram_budget_bytes = 0;
  const auto engine = OpenEngine(bare);
  const auto session = *engine->NewSession();
  EXPECT_TRUE(session->Sync(job.prompt, nullptr).ok());
  GenerateOptions wishes = job.options;
  wishes.sampling.seed += static_cast<std::uint64_t>(choice);
  Heard heard;
  const auto report = session->Generate(wishes, [&](const Token& token) {
    heard.text += token.text;
    if (token.id >= 0) {
      heard.ids.push_back(token.id);
      heard.logprobs.push_back(token.logprob);
    }
    return true;
  });
  EXPECT_TRUE(report.ok());
  return heard;
}

inline GenerateOptions Wish(int n_tokens, std::uint64_t seed,
                            double temperature = 0.8) {
  GenerateOptions options{
      .n_tokens_max = n_tokens, .ignore_eos = true, .logprobs = true};
  options.sampling.temperature = temperature;
  options.sampling.seed = seed;
  return options;
}

}  // namespace hearth::serve
