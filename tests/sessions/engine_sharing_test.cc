// One engine, several threads.
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "hearth/engine.h"
#include "testing/model_paths.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

using Ids = std::vector<std::int32_t>;

Ids PromptOf(int thread, int turn) {
  Ids ids;
  for (int i = 0; i < 90 + 17 * turn; ++i) {
    // The first 64 tokens are common to all.
    ids.push_back(i < 64 ? i % 300 : (i * 7 + thread * 31 + turn) % 500);
  }
  return ids;
}

GenerateOptions Wish(int thread) {
  GenerateOptions options{.n_tokens_max = 8, .ignore_eos = true};
  options.sampling.seed = static_cast<std::uint64_t>(thread);
  return options;
}

TEST(EngineSharing, ThreadsGetWhatEachGetsAlone) {
  constexpr int kThreads = 3, kTurns = 3;
  TempDir dir;
  std::vector<Ids> want;
  {
    const auto engine = *Engine::Open({.model_path = kStories260K});
    for (int t = 0; t < kThreads; ++t) {
      auto session = *engine->NewSession();
      for (int turn = 0; turn < kTurns; ++turn) {
        ASSERT_TRUE(session->Sync(PromptOf(t, turn), nullptr).ok());
        want.push_back(session->Generate(Wish(t), nullptr)->token_ids);
      }
    }
  }
  for (const char* draft : {"", "prompt-lookup"}) {
    const auto engine =
        *Engine::Open({.model_path = kStories260K,
                       .n_threads = 2,
                       .block_tokens = 16,
                       .draft = draft,
                       .prompt_cache_dir = dir.path() + "/cache"});
    std::vector<Ids> got(want.size());
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        auto session = *engine->NewSession();
        for (int turn = 0; turn < kTurns; ++turn) {
          const Ids ids = PromptOf(t, turn);
          (void)engine->Match(ids).n_tokens();
          EXPECT_TRUE(session->Sync(ids, nullptr).ok());
          auto fork = *session->Fork();
          got[static_cast<std::size_t>(t * kTurns + turn)] =
              fork->Generate(Wish(t), nullptr)->token_ids;
          fork->Persist();
          (void)engine->PreferStoredIds(ids);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(got, want) << draft;
    EXPECT_TRUE(engine->DrainSaves().ok());
  }
}

TEST(EngineSharing, ASessionOutlivesItsEngine) {
  TempDir dir;
  auto engine = *Engine::Open({.model_path = kStories260K,
                               .draft = kStories260K,
                               .prompt_cache_dir = dir.path() + "/cache"});
  auto session = *engine->NewSession();
  engine.reset();
  ASSERT_TRUE(session->Sync(PromptOf(0, 0), nullptr).ok());
  EXPECT_EQ(session->Generate(Wish(0), nullptr)->token_ids.size(), 8u);
  auto fork = *session->Fork();
  auto answer = *fork->Begin(Wish(0), nullptr, nullptr);
  fork.reset();
  EXPECT_FALSE(answer->Next()->empty());
  session->Finish();
}

TEST(EngineSharing, ASecondThreadInASessionIsRefused) {
  const auto engine = *Engine::Open({.model_path = kStories260K});
  auto session = *engine->NewSession();
  ASSERT_TRUE(session->Sync(PromptOf(0, 0), nullptr).ok());
  int n_refused = 0;
  const auto report = session->Generate(Wish(0), [&](const Token&) {
    EXPECT_GT(session->Usage().tokens, 0) << "the same thread may ask";
    std::thread([&] {
      const auto done = session->Rewind(0);
      n_refused += !done.ok() && done.error().code == Code::kInvalidArgument;
    }).join();
    return true;
  });
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->token_ids.size(), 8u);
  EXPECT_GE(n_refused, 8);
}

// Idle sessions of one thread let go for those of another, and nobody loses
// what it is in the middle of.
TEST(EngineSharing, TheMemoryBudgetHoldsAcrossThreads) {
  EngineOptions options{.model_path = kStories260K, .block_tokens = 16};
  const auto block_bytes =
      (*Engine::Open(options))->info().kv_bytes_per_token[0].second * 16;
  options.kv_ram_budget_bytes = 24 * block_bytes;  // three of seven sessions
  const auto engine = *Engine::Open(options);
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      std::vector<std::unique_ptr<Session>> mine;
      mine.push_back(*engine->NewSession());
      mine.push_back(*engine->NewSession());
      for (int turn = 0; turn < 8; ++turn) {
        Session& session = *mine[static_cast<std::size_t>(turn % 2)];
        const Ids ids = PromptOf(t, turn % 2);
        const auto synced = session.Sync(ids, nullptr);
        if (!synced.ok()) {
          EXPECT_EQ(synced.error().code, Code::kResourceFull);
          continue;
        }
        EXPECT_EQ(session.tokens(), ids);
        const auto report = session.Generate(Wish(t), nullptr);
        EXPECT_TRUE(report.ok() || report.error().code == Code::kResourceFull);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace hearth
