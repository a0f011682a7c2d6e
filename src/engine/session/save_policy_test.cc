#include "engine/session/save_policy.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "store/directory/layout.h"
#include "testing/own_sequence.h"
#include "testing/tagged_tokens.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr int kBlock = 16;

SavePolicy::Clock::time_point g_now;

class SavePolicyTest : public testing::Test {
 protected:
  SavePolicyTest() {
    options_.prompt_cache_dir = dir_.path() + "/s";
    options_.cache_always = true;
    Open();
  }
  void Open() {
    cache_ = std::move(*PromptCache::Open(options_));
    KvIdentity identity;
    identity.model_id = Sha256().Field("tiny").Finish();
    identity.format_id = FormatId(spec_);
    identity.model_name = "tiny";
    cache_->SetIdentity(identity);
    policy_.emplace(cache_.get(), options_, *tokenizer_, SessionOptions{},
                    /*state_grid=*/1, [] { return g_now; });
  }

  // A history of these tokens, each computed.
  History Of(const std::vector<int>& tokens) const {
    auto sequence = OwnSequence(spec_);
    EXPECT_TRUE(Append(*sequence, tokens).ok());
    History history(OwnSequence(spec_));
    history.Replace(std::move(sequence),
                    std::vector<std::int32_t>(tokens.begin(), tokens.end()));
    return history;
  }
  // How many of the tokens the cache has, once all saves are written.
  int Stored(const std::vector<int>& tokens) const {
    cache_->WaitForWriter();
    return cache_
        ->Lookup("", spec_,
                 std::vector<std::int32_t>(tokens.begin(), tokens.end()), 0)
        .n_tokens;
  }
  int Manifests() const {
    cache_->WaitForWriter();
    int n = 0;
    std::error_code none;  // there may be no folder yet
    for (const auto& file :
         fs::directory_iterator(options_.prompt_cache_dir + "/prompts", none)) {
      n += file.path().extension() == kPromptSuffix ? 1 : 0;
    }
    return n;
  }

  TempDir dir_;
  KvSpec spec_ = UniformKv{
      .n_layers = 1, .n_heads = 1, .head_dim = 4, .block_tokens = kBlock};
  EngineOptions options_;
  std::unique_ptr<Tokenizer> tokenizer_ = MakeByteTokenizer();
  std::unique_ptr<PromptCache> cache_;
  std::optional<SavePolicy> policy_;
};

TEST_F(SavePolicyTest, APromptIsSavedOnceItsAnswerBegins) {
  const auto tokens = Range(0, 40);
  History history = Of(tokens);
  policy_->BeginPrompt(40);
  policy_->AfterStep(history);
  EXPECT_EQ(Stored(tokens), 0) << "nothing before that";
  policy_->SavePrompt(history);
  EXPECT_EQ(Stored(tokens), 40);
}

TEST_F(SavePolicyTest, ThePromptIsSavedWithoutTheAnswer) {
  const auto tokens = Range(0, 40);
  policy_->BeginPrompt(33);
  policy_->SavePrompt(Of(tokens));
  EXPECT_EQ(Stored(tokens), 33);
}

TEST_F(SavePolicyTest, AForgottenPromptIsNotSaved) {
  const auto tokens = Range(0, 40);
  policy_->BeginPrompt(40);
  policy_->ForgetPrompt();
  policy_->SavePrompt(Of(tokens));
  EXPECT_EQ(Stored(tokens), 0);
}

TEST_F(SavePolicyTest, FullBlocksOfALongPrefillAreSavedEveryHalfSecond) {
  const auto tokens = Range(0, 40);
  History history = Of(tokens);
  policy_->BeginPrompt(100);
  g_now += milliseconds(499);
  policy_->AfterStep(history);
  EXPECT_EQ(Stored(tokens), 0);
  g_now += milliseconds(1);
  policy_->AfterStep(history);
  EXPECT_EQ(Stored(tokens), 2 * kBlock);
  const auto longer = Range(0, 60);
  History grown = Of(longer);
  policy_->AfterStep(grown);
  EXPECT_EQ(Stored(longer), 2 * kBlock) << "the next half second begins";
  g_now += milliseconds(500);
  policy_->AfterStep(grown);
  EXPECT_EQ(Stored(longer), 3 * kBlock);
  EXPECT_EQ(Manifests(), 0) << "a manifest is for a prompt that is whole";
}

TEST_F(SavePolicyTest, WhatWasRestoredIsNotWrittenAgain) {
  const auto tokens = Range(0, 40);
  policy_->NoteRestored(40, 0);
  policy_->BeginPrompt(40);
  policy_->SavePrompt(Of(tokens));
  EXPECT_TRUE(policy_->SaveAll(Of(tokens), /*may_wait=*/true, /*rests=*/false));
  EXPECT_EQ(Stored(tokens), 0);
}

TEST_F(SavePolicyTest, BehindARewindTheTokensAreNews) {
  const auto first = Range(0, 40);
  policy_->BeginPrompt(40);
  policy_->SavePrompt(Of(first));
  auto second = Range(0, 20);
  const auto other = Range(500, 520);
  second.insert(second.end(), other.begin(), other.end());
  policy_->NoteRewound(20);
  policy_->BeginPrompt(40);
  policy_->SavePrompt(Of(second));
  EXPECT_EQ(Stored(second), 40);
  EXPECT_EQ(Stored(first), 40);
}

TEST_F(SavePolicyTest, AllIsSavedWhenAskedForAndBlocksGetTheirManifest) {
  const auto tokens = Range(0, 2 * kBlock);
  History history = Of(tokens);
  policy_->BeginPrompt(100);
  g_now += milliseconds(500);
  policy_->AfterStep(history);
  ASSERT_EQ(Stored(tokens), 2 * kBlock);
  ASSERT_EQ(Manifests(), 0);
  EXPECT_TRUE(policy_->SaveAll(history, /*may_wait=*/true, /*rests=*/false));
  EXPECT_EQ(Manifests(), 1) << "though every token is stored";
  EXPECT_TRUE(
      policy_->SaveAll(Of(Range(0, 40)), /*may_wait=*/true, /*rests=*/false));
  EXPECT_EQ(Stored(Range(0, 40)), 40);
}

TEST_F(SavePolicyTest, AForkLeavesThePromptToItsOriginal) {
  const auto tokens = Range(0, 40);
  policy_->BeginPrompt(40);
  SavePolicy fork = policy_->Fork();
  fork.SavePrompt(Of(tokens));
  EXPECT_EQ(Stored(tokens), 0);
  policy_->SavePrompt(Of(tokens));
  EXPECT_EQ(Stored(tokens), 40);
}

// In a directory without room every save is lost, and the next call tries anew.
TEST_F(SavePolicyTest, WhatALostSaveHadIsHandedOverAgain) {
  const auto tokens = Range(0, 40);
  options_.cache_disk_budget_bytes = 1;
  Open();
  policy_->BeginPrompt(40);
  policy_->SavePrompt(Of(tokens));
  EXPECT_EQ(Stored(tokens), 0);
  const std::uint64_t n_lost = cache_->n_lost();
  EXPECT_GT(n_lost, 0u);
  EXPECT_TRUE(policy_->SaveAll(Of(tokens), /*may_wait=*/true, /*rests=*/false));
  cache_->WaitForWriter();
  const std::uint64_t n_lost_again = cache_->n_lost();
  EXPECT_GT(n_lost_again, n_lost);
  (void)cache_->Drain(0);
  policy_->BeginPrompt(40);
  policy_->SavePrompt(Of(tokens));
  cache_->WaitForWriter();
  EXPECT_GT(cache_->n_lost(), n_lost_again);
}

TEST_F(SavePolicyTest, WithoutACacheNothingHappens) {
  SavePolicy none(nullptr, options_, *tokenizer_, {});
  History history = Of(Range(0, 40));
  none.BeginPrompt(40);
  none.AfterStep(history);
  none.SavePrompt(history);
  EXPECT_TRUE(none.SaveAll(history, /*may_wait=*/true, /*rests=*/false));
  EXPECT_EQ(Stored(Range(0, 40)), 0);
}

}  // namespace
}  // namespace hearth
