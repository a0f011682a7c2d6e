// The scheduler on a real engine: what jobs are told, and what they share.
#include "serve/schedule/scheduler.h"

#include <atomic>

#include "serve/schedule/tests/scheduler_testing.h"
#include "testing/model_paths.h"
#include "testing/temp_dir.h"

namespace hearth::serve {
namespace {

EngineOptions Stories() {
  return {.model_path = kStories260K, .n_threads = 1, .block_tokens = 16};
}

TEST(Scheduler, AJobIsAnsweredAsAlone) {
  const auto engine = OpenEngine(Stories());
  Served served(*engine, {});
  std::mt19937 rng(1);
  const Job job{.prompt = RandomTokens(rng, 100), .options = Wish(20, 7)};
  const Outcome outcome = served.Await(served.Ask(job));
  ASSERT_TRUE(outcome.ends.at(0).ok());
  EXPECT_EQ(outcome.answers.at(0), Alone(Stories(), job));
  EXPECT_EQ(outcome.ends.at(0)->token_ids, outcome.answers.at(0).ids);
  EXPECT_EQ(outcome.done[0].prompt_tokens, 100);
  EXPECT_EQ(outcome.done[0].computed_tokens, 100);
  EXPECT_EQ(served->View().done, 1u);
}

TEST(Scheduler, TheNextTurnComputesOnlyWhatIsNew) {
  const auto engine = OpenEngine(Stories());
  Served served(*engine, {});
  std::mt19937 rng(2);
  Job job{.prompt = RandomTokens(rng, 100), .options = Wish(20, 7)};
  const Outcome first = served.Await(served.Ask(job));
  for (const std::int32_t id : first.answers.at(0).ids) {
    job.prompt.push_back(id);
  }
  for (const std::int32_t id : RandomTokens(rng, 9)) job.prompt.push_back(id);
  const Outcome second = served.Await(served.Ask(job));
  EXPECT_EQ(second.done[0].reused_tokens, 119)
      << "all but the last token of the answer, which was never computed";
  EXPECT_EQ(second.starts.at(0).reuse_tier, "memory");
  EXPECT_EQ(second.answers.at(0), Alone(Stories(), job));
}

TEST(Scheduler, OfTwoEqualPromptsInFlightOneIsComputed) {
  const auto engine = OpenEngine(Stories());
  Served served(*engine, {});
  std::mt19937 rng(3);
  Job job{.prompt = RandomTokens(rng, 300), .options = Wish(5, 1)};
  const JobId a = served.Ask(job);
  const JobId b = served.Ask(job);
  job.prompt.back() ^= 1;
  const JobId c = served.Ask(job);
  int computed = 0;
  for (const JobId id : {a, b, c}) {
    const Outcome outcome = served.Await(id);
    ASSERT_TRUE(outcome.ends.at(0).ok());
    computed += outcome.done[0].computed_tokens;
  }
  EXPECT_LE(computed, 300 + 2 * 16);
}

TEST(Scheduler, SeveralAnswersForkOnePrompt) {
  const auto engine = OpenEngine(Stories());
  Served served(*engine, {});
  std::mt19937 rng(4);
  const Job job{
      .prompt = RandomTokens(rng, 70), .options = Wish(12, 5), .n = 4};
  const Outcome outcome = served.Await(served.Ask(job));
  ASSERT_EQ(outcome.ends.size(), 4u);
  for (int choice = 0; choice < 4; ++choice) {
    EXPECT_EQ(outcome.answers.at(choice), Alone(Stories(), job, choice));
  }
  EXPECT_EQ(outcome.done[0].computed_tokens, 70);
}

TEST(Scheduler, KeySpacesShareNothing) {
  TempDir dir;
  EngineOptions options = Stories();
  options.prompt_cache_dir = dir.path() + "/cache";
  options.cache_always = true;
  std::mt19937 rng(5);
  Job job{.prompt = RandomTokens(rng, 100), .options = Wish(5, 1)};
  for (const bool restarted : {false, true}) {
    const auto engine = OpenEngine(options);
    Served served(*engine, {});
    for (const char* space : {"alice", "bob", ""}) {
      job.key_space = space;
      const Outcome outcome = served.Await(served.Ask(job));
      EXPECT_EQ(outcome.done[0].reused_tokens, restarted ? 99 : 0) << space;
    }
    served.Stop();
    ASSERT_TRUE(engine->DrainSaves().ok());
  }
}

TEST(Scheduler, WhatCanNeverBeAnsweredIsRefusedAtOnce) {
  EngineOptions options = Stories();
  options.context_tokens = 64;
  const auto engine = OpenEngine(options);
  Served served(*engine, {});
  const auto refused = [&](Job job) {
    const auto submitted = served->Submit(std::move(job));
    return !submitted.ok() && submitted.error().code == Code::kInvalidArgument;
  };
  EXPECT_TRUE(refused({.prompt = {}}));
  EXPECT_TRUE(refused({.prompt = TokenIds(65, 3)}));
  EXPECT_TRUE(refused({.prompt = {1, 512}}));
  EXPECT_TRUE(refused({.prompt = {1, -1}}));
  EXPECT_TRUE(refused({.prompt = {1}, .n = 0}));
  EXPECT_TRUE(refused({.prompt = {1}, .n = 9}));
  EXPECT_TRUE(refused({.prompt = {1}, .options = {.stop_texts = {""}}}));
  const Outcome longest = served.Await(served.Ask({.prompt = TokenIds(64, 3)}));
  ASSERT_TRUE(longest.ends.at(0).ok());
  EXPECT_EQ(longest.ends.at(0)->stop, StopReason::kContext);
}

TEST(Scheduler, BeyondThoseThatMayWaitNobodyIsTaken) {
  const auto engine = OpenEngine(Stories());
  const auto scheduler = Scheduler::Make(*engine, {.waiting_max = 3});
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(scheduler->Submit({.prompt = {1, 2, 3}}).ok());
  }
  const auto refused = scheduler->Submit({.prompt = {1, 2, 3}});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::kResourceFull);
}

TEST(Scheduler, APausedAnswerStandsStillAndOthersGoOn) {
  const auto engine = OpenEngine(Stories());
  Served served(*engine, {});
  std::mt19937 rng(6);
  const Job job{.prompt = RandomTokens(rng, 40), .options = Wish(60, 2)};
  std::atomic<int> heard = 0;
  const JobId slow = served.Ask(job, [&](JobId id, int) {
    if (++heard == 5) served->Pause(id, true);
  });
  const JobId other =
      served.Ask({.prompt = RandomTokens(rng, 40), .options = Wish(150, 3)});
  EXPECT_TRUE(served.Await(other).ends.at(0).ok());
  EXPECT_LE(heard, 7) << "one pass may have begun";
  EXPECT_EQ(served->View().jobs.at(0).state, JobView::State::kPaused);
  served->Pause(slow, false);
  EXPECT_EQ(served.Await(slow).answers.at(0), Alone(Stories(), job));
}

TEST(Scheduler, StopEndsEverybody) {
  const auto engine = OpenEngine(Stories());
  Served served(*engine, {});
  std::mt19937 rng(7);
  std::vector<JobId> ids;
  for (int i = 0; i < 12; ++i) {
    ids.push_back(served.Ask(
        {.prompt = RandomTokens(rng, 200), .options = Wish(300, 2)}));
  }
  served.Stop();
  for (const JobId id : ids) {
    const Outcome outcome = served.Await(id);
    ASSERT_FALSE(outcome.ends.at(0).ok());
    EXPECT_EQ(outcome.ends.at(0).error().code, Code::kCancelled);
  }
  EXPECT_FALSE(served->Submit({.prompt = {1}}).ok());
}

}  // namespace
}  // namespace hearth::serve
