// P6: a job that goes, at whatever moment, is gone within a pass; nobody else
// notices, and what was computed for it is kept.
#include <atomic>

#include "serve/schedule/tests/scheduler_testing.h"
#include "testing/model_paths.h"
#include "testing/temp_dir.h"

namespace hearth::serve {
namespace {

EngineOptions Stories() {
  return {.model_path = kStories260K, .n_threads = 1, .block_tokens = 16};
}

// What the job does when it is told its `event`-th thing.
class Leaves {
 public:
  explicit Leaves(int event) : event_(event) {}
  void Happens(Served& served, const std::atomic<JobId>& id) {
    if (n_++ == event_) served->Cancel(id);
  }

 private:
  const int event_;
  int n_ = 0;
};

TEST(SchedulerCancel, AtEveryEventOthersAnswersAreTheSame) {
  std::mt19937 rng(1);
  const TokenIds trunk = RandomTokens(rng, 100);
  const Job other{.prompt = trunk, .options = Wish(15, 3)};
  Job leaving{.prompt = trunk, .options = Wish(10, 4), .n = 2};
  leaving.prompt.push_back(7);
  const Heard alone = Alone(Stories(), other);
  const auto engine = OpenEngine(Stories());
  // on_start, on_prefill, tokens of two choices, on_end.
  for (int event = 0; event < 26; ++event) {
    Served served(*engine, {.resting_max = 0});
    Leaves leaves(event);
    std::atomic<JobId> id = 0;
    std::atomic<int> n_ended = 0, n_done = 0;
    Job job = leaving;
    const auto happens = [&] { leaves.Happens(served, id); };
    job.callbacks.on_start = [&](const SyncReport&) { happens(); };
    job.callbacks.on_prefill = [&](int, int) { happens(); };
    job.callbacks.on_token = [&](int, const Token&) {
      happens();
      return true;
    };
    job.callbacks.on_end = [&](int, const Result<GenerateReport>& result) {
      happens();
      ++n_ended;
      if (!result.ok()) {
        EXPECT_EQ(result.error().code, Code::kCancelled);
      }
    };
    job.callbacks.on_done = [&](const JobReport&) { ++n_done; };
    // The scheduler's thread waits for `other` to be there, too.
    const JobId stays = served.Ask(other);
    id = *served->Submit(job);
    EXPECT_EQ(served.Await(stays).answers.at(0), alone) << event;
    served.Stop();
    EXPECT_EQ(n_ended, 2);
    EXPECT_EQ(n_done, 1);
  }
}

TEST(SchedulerCancel, TheHeirOfALeaderTakesOver) {
  const auto engine = OpenEngine(Stories());
  Served served(*engine, {});
  std::mt19937 rng(2);
  const Job job{.prompt = RandomTokens(rng, 500), .options = Wish(4, 3)};
  Job leader = job;
  std::atomic<JobId> id = 0;
  leader.callbacks.on_prefill = [&](int, int) { served->Cancel(id); };
  const Outcome want = [&] {
    Outcome alone;
    alone.answers[0] = Alone(Stories(), job);
    return alone;
  }();
  id = *served->Submit(leader);
  const JobId a = served.Ask(job), b = served.Ask(job);
  const Outcome first = served.Await(a), second = served.Await(b);
  EXPECT_EQ(first.answers, want.answers);
  EXPECT_EQ(second.answers, want.answers);
  EXPECT_LE(first.done[0].computed_tokens + second.done[0].computed_tokens,
            500 + 16);
}

TEST(SchedulerCancel, WhatWasComputedIsKept) {
  TempDir dir;
  EngineOptions options = Stories();
  options.prompt_cache_dir = dir.path() + "/cache";
  options.cache_always = true;
  std::mt19937 rng(3);
  const Job job{.prompt = RandomTokens(rng, 300), .options = Wish(200, 3)};
  int n_heard = 0;
  {
    const auto engine = OpenEngine(options);
    Served served(*engine, {});
    const JobId id = served.Ask(job, [&](JobId self, int) {
      if (++n_heard == 40) served->Cancel(self);
    });
    EXPECT_FALSE(served.Await(id).ends.at(0).ok());
    served.Stop();
    ASSERT_TRUE(engine->DrainSaves().ok());
  }
  const auto engine = OpenEngine(options);
  Served served(*engine, {});
  const Outcome again = served.Await(served.Ask(job));
  EXPECT_EQ(again.done[0].reused_tokens, 299);
  EXPECT_EQ(again.answers.at(0), Alone(options, job));
}

}  // namespace
}  // namespace hearth::serve
