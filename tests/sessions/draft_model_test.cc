// A draft model's own keys and values: stored, sealed and computed as the
// target's are.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/file.h"
#include "hearth/engine.h"
#include "testing/model_paths.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

GenerateOptions Greedy(int n) {
  return {.n_tokens_max = n, .sampling = {.temperature = 0}};
}

std::vector<std::int32_t> Prompt(int n) {
  std::vector<std::int32_t> ids;
  for (int i = 0; i < n; ++i) ids.push_back(3 + i * 37 % 500);
  return ids;
}

// field-reports.md R15: after a restore the draft is warm too.
TEST(DraftModel, ItsKvIsKeptInThePromptCacheToo) {
  TempDir dir;
  const std::string store = dir.path() + "/s";
  const auto ids = Prompt(150);
  const EngineOptions options{.model_path = kStories260K,
                              .n_threads = 1,
                              .draft = kStories260K,
                              .prompt_cache_dir = store,
                              .cache_always = true};
  std::string text;
  for (const bool warm : {false, true}) {
    const auto engine = Engine::Open(options).value();
    auto session = *engine->NewSession();
    const auto sync = session->Sync(ids, nullptr);
    ASSERT_TRUE(sync.ok());
    EXPECT_EQ(sync->reused_tokens, warm ? 149 : 0);
    const auto report = session->Generate(Greedy(30), nullptr);
    ASSERT_TRUE(report.ok());
    EXPECT_GT(report->speculation.accepted, 10);
    if (warm) {
      EXPECT_EQ(report->text, text);
    }
    text = report->text;
    session->Persist();
    ASSERT_TRUE(engine->DrainSaves().ok());
  }
}

TEST(DraftModel, ItsPrefillCanBeStopped) {
  const auto ids = Prompt(200);
  const auto engine = Engine::Open({.model_path = kStories260K,
                                    .n_threads = 1,
                                    .prefill_step_tokens = 16,
                                    .draft = kStories260K})
                          .value();
  auto session = *engine->NewSession();
  ASSERT_TRUE(session->Sync(ids, nullptr).ok());
  int n_calls = 0;
  const auto stopped =
      session->Generate(Greedy(8), nullptr, [&](int done, int total) {
        EXPECT_EQ(total, 201);
        return ++n_calls < 3 || done > 40;
      });
  ASSERT_TRUE(stopped.ok()) << stopped.error().message;
  EXPECT_EQ(n_calls, 3);
  EXPECT_EQ(stopped->stop, StopReason::kCaller);
  EXPECT_EQ(stopped->token_ids.size(), 1u);
  // The next turn goes on from there, with the draft.
  ASSERT_TRUE(session->Sync(ids, nullptr).ok());
  const auto whole = session->Generate(Greedy(8), nullptr);
  ASSERT_TRUE(whole.ok());
  EXPECT_EQ(whole->token_ids.size(), 8u);
  EXPECT_EQ(whole->token_ids[0], stopped->token_ids[0]);
}

// The draft, here the same model, stores nothing that can be read without the
// key.
TEST(DraftModel, ItsKvIsKeptUnderTheSameKey) {
  TempDir dir;
  const std::string key = dir.path() + "/key";
  ASSERT_TRUE(
      WriteFileAtomically(key, AsBytes("0123456789abcdef0123456789abcdef"))
          .ok());
  const auto ids = Prompt(150);
  for (const bool with_key : {true, false}) {
    const auto engine = Engine::Open({.model_path = kStories260K,
                                      .n_threads = 1,
                                      .draft = kStories260K,
                                      .prompt_cache_dir = dir.path() + "/s",
                                      .cache_key_file = with_key ? key : ""})
                            .value();
    auto session = *engine->NewSession();
    const auto sync = session->Sync(ids, nullptr);
    ASSERT_TRUE(sync.ok());
    EXPECT_EQ(sync->reused_tokens, 0);
    ASSERT_TRUE(session->Generate(Greedy(8), nullptr).ok());
    session->Persist();
    ASSERT_TRUE(engine->DrainSaves().ok());
  }
}

}  // namespace
}  // namespace hearth
