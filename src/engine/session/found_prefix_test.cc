#include "engine/session/found_prefix.h"

#include <gtest/gtest.h>

#include "base/thread_pool.h"
#include "engine/session/step_runner.h"
#include "formats/loader.h"
#include "model/cpu/cpu_ops.h"
#include "testing/model_paths.h"

namespace hearth {
namespace {

constexpr int kBlock = 4;

class FoundPrefixTest : public ::testing::Test {
 protected:
  FoundPrefixTest()
      : model_(*LoadModel(kStories260K)),
        workers_(std::make_shared<Workers>(1, 1)),
        runner_(model_, workers_, MakeCpuOps(model_, workers_->pool)) {
    EngineOptions options;
    options.block_tokens = kBlock;
    plan_ = *KvPlan::Make(options, model_.config, false, 0);
    for (int i = 0; i < 11; ++i) tokens_.push_back(10 + i);
    ids_ = {root_, tokens_, FullBlockIds(root_, tokens_, kBlock)};
  }
  // A history of the tokens whose two full blocks others find.
  History Held() {
    History history(plan_.NewSequence(), root_);
    const StepItem item{&history, tokens_, LogitRows::kLast};
    EXPECT_TRUE(runner_.Run({&item, 1}).ok());
    history.Publish();
    return history;
  }
  // What a store would give of the history's blocks from `first` on.
  static StoreMatch Stored(const History& history, int first) {
    StoreMatch match;
    match.first_token = first * kBlock;
    for (int b = first; b < 2; ++b) {
      const BlockImage image = *history.kv().Image(b, kBlock);
      match.blocks.push_back({.id = {},
                              .n_tokens = kBlock,
                              .payload = image.payload,
                              .owner = image.owner});
      match.n_tokens += kBlock;
    }
    return match;
  }

  const LoadedModel model_;
  const std::shared_ptr<Workers> workers_;
  StepRunner runner_;
  KvPlan plan_;
  const Digest root_ = Sha256().Field("a model").Finish();
  std::vector<std::int32_t> tokens_;
  PrefixIds ids_;
};

TEST_F(FoundPrefixTest, KeySpacesHaveNothingInCommon) {
  EXPECT_EQ(RootIn(root_, ""), root_);
  EXPECT_NE(RootIn(root_, "a"), root_);
  EXPECT_NE(RootIn(root_, "a"), RootIn(root_, "b"));
  EXPECT_EQ(RootIn(root_, "a"), RootIn(root_, "a"));
}

TEST_F(FoundPrefixTest, AnIdStandsForAllTokensBeforeItsEnd) {
  ASSERT_EQ(ids_.full.size(), 2U) << "of eleven tokens, two full blocks";
  std::vector<std::int32_t> other = tokens_;
  other[5] = 1;
  const auto of_other = FullBlockIds(root_, other, kBlock);
  EXPECT_EQ(of_other[0], ids_.full[0]);
  EXPECT_NE(of_other[1], ids_.full[1]);
  EXPECT_NE(FullBlockIds(RootIn(root_, "a"), tokens_, kBlock)[0], ids_.full[0]);
}

TEST_F(FoundPrefixTest, WhatAnotherSequenceHoldsIsFoundWhileItDoes) {
  EXPECT_EQ(HeldInMemory(plan_, ids_).n_tokens, 0);
  {
    const History history = Held();
    EXPECT_EQ(HeldInMemory(plan_, ids_).n_tokens, 2 * kBlock);
    const RestoredKv restored = *RestoreKv(plan_, ids_, {});
    EXPECT_EQ(restored.sequence->n_tokens(), 2 * kBlock);
    EXPECT_EQ(restored.n_shared_tokens, 2 * kBlock);
    EXPECT_GT(restored.sequence->Usage().shared_bytes, 0U);
  }
  EXPECT_EQ(HeldInMemory(plan_, ids_).n_tokens, 0);
}

TEST_F(FoundPrefixTest, StoredBlocksFollowThoseInMemory) {
  // The blocks' bytes outlive the history that nobody shares any more.
  StoreMatch all, second;
  {
    const History history = Held();
    all = Stored(history, 0);
    second = Stored(history, 1);
    PrefixIds one = ids_;
    one.full.resize(1);
    const RestoredKv restored = *RestoreKv(plan_, one, Stored(history, 1));
    EXPECT_EQ(restored.n_shared_tokens, kBlock);
    EXPECT_EQ(restored.sequence->n_tokens(), 2 * kBlock);
  }
  const PrefixIds strange = {root_, tokens_,
                             FullBlockIds(RootIn(root_, "a"), tokens_, kBlock)};
  const RestoredKv restored = *RestoreKv(plan_, strange, std::move(all));
  EXPECT_EQ(restored.n_shared_tokens, 0);
  EXPECT_EQ(restored.sequence->n_tokens(), 2 * kBlock);
  // A match that begins behind what is held by nobody is of no use.
  const RestoredKv gap = *RestoreKv(plan_, strange, std::move(second));
  EXPECT_EQ(gap.sequence->n_tokens(), 0);
}

}  // namespace
}  // namespace hearth
