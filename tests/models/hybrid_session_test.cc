// Sessions of a model with recurrent states, through the public door: what is
// kept of a state, what is computed again, and that guesses change nothing.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "hearth/engine.h"
#include "hearth_test_paths.h"
#include "testing/family_fixture.h"

namespace hearth {
namespace {

class HybridSession : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    dir_ = DirectoryOf(GetParam());
    if (dir_.empty()) GTEST_SKIP() << "no such fixture here";
    ids_ = ReadReference(dir_).ids;
  }
  std::unique_ptr<Engine> Open(const std::string& draft) const {
    EngineOptions options;
    options.model_path = dir_;
    options.n_threads = 1;
    options.prefill_step_tokens = 48;
    options.draft = draft;
    auto engine = Engine::Open(options);
    EXPECT_TRUE(engine.ok()) << engine.error().message;
    return engine.ok() ? std::move(*engine) : nullptr;
  }
  static GenerateReport Answer(Session& session, int n) {
    auto report = session.Generate(
        {.n_tokens_max = n, .ignore_eos = true, .sampling = {.temperature = 0}},
        nullptr);
    EXPECT_TRUE(report.ok()) << report.error().message;
    return report.ok() ? std::move(*report) : GenerateReport{};
  }
  std::string dir_;
  std::vector<std::int32_t> ids_;
};

TEST_P(HybridSession, TheSamePromptAgainComputesItsLastTokenAlone) {
  const auto engine = Open("");
  const auto session = *engine->NewSession();
  const auto first = session->Sync(ids_, nullptr);
  ASSERT_TRUE(first.ok()) << first.error().message;
  EXPECT_EQ(first->reused_tokens, 0);
  EXPECT_NE(first->miss_reason.find("state"), std::string::npos);
  const GenerateReport answer = Answer(*session, 12);
  const auto again = session->Sync(ids_, nullptr);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->reused_tokens, again->prompt_tokens - 1);
  EXPECT_EQ(Answer(*session, 12).token_ids, answer.token_ids);
}

TEST_P(HybridSession, ALongerPromptGoesOnFromTheAnswer) {
  const auto engine = Open("");
  const auto session = *engine->NewSession();
  ASSERT_TRUE(session->Sync(ids_, nullptr).ok());
  (void)Answer(*session, 8);
  std::vector<std::int32_t> next = session->tokens();
  const auto n_held = static_cast<int>(next.size());
  for (int i = 0; i < 20; ++i) next.push_back(i * 3 + 1);
  const auto report = session->Sync(next, nullptr);
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(report->reused_tokens, n_held);
  const auto fresh = *engine->NewSession();
  ASSERT_TRUE(fresh->Sync(next, nullptr).ok());
  EXPECT_EQ(Answer(*session, 12).token_ids, Answer(*fresh, 12).token_ids);
}

TEST_P(HybridSession, APromptThatPartsInTheMiddleStartsAgain) {
  const auto engine = Open("");
  const auto session = *engine->NewSession();
  ASSERT_TRUE(session->Sync(ids_, nullptr).ok());
  std::vector<std::int32_t> other = ids_;
  other[100] = (other[100] + 1) % 384;
  ASSERT_TRUE(session->Sync(other, nullptr).ok());
  const auto fresh = *engine->NewSession();
  ASSERT_TRUE(fresh->Sync(other, nullptr).ok());
  EXPECT_EQ(Answer(*session, 12).token_ids, Answer(*fresh, 12).token_ids);
}

TEST_P(HybridSession, GuessesAndForksGiveTheSameText) {
  // (Guesses that are wrong in every way: tests/models/states_test.cc.)
  const auto plain = Open("");
  const auto guessing = Open("prompt-lookup");
  const auto a = *plain->NewSession();
  const auto b = *guessing->NewSession();
  ASSERT_TRUE(a->Sync(ids_, nullptr).ok());
  ASSERT_TRUE(b->Sync(ids_, nullptr).ok());
  const auto fork = std::move(*b->Fork());
  const GenerateReport want = Answer(*a, 60);
  const GenerateReport got = Answer(*b, 60);
  EXPECT_EQ(got.token_ids, want.token_ids);
  EXPECT_EQ(Answer(*fork, 60).token_ids, want.token_ids);
}

INSTANTIATE_TEST_SUITE_P(All, HybridSession,
                         ::testing::Values("lfm2", "qwen3_5_long"),
                         [](const auto& test) {
                           return std::string(test.param);
                         });

}  // namespace
}  // namespace hearth
