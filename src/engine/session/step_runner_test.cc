#include "engine/session/step_runner.h"

#include <gtest/gtest.h>

#include "base/thread_pool.h"
#include "formats/loader.h"
#include "model/cpu/cpu_ops.h"
#include "testing/model_paths.h"
#include "testing/own_sequence.h"

namespace hearth {
namespace {

using Ids = std::vector<std::int32_t>;

class StepRunnerTest : public ::testing::Test {
 protected:
  StepRunnerTest()
      : model_(*LoadModel(kStories260K)),
        workers_(std::make_shared<Workers>(2, 1)),
        runner_(model_, workers_, MakeCpuOps(model_, workers_->pool)) {}

  History New() const {
    const KvSpec spec = UniformKv{.n_layers = model_.config.n_layers,
                                  .n_heads = model_.config.n_kv_heads,
                                  .head_dim = model_.config.head_dim,
                                  .block_tokens = 4};
    return History(OwnSequence(spec));
  }
  Result<void> Run(std::vector<StepItem> items) { return runner_.Run(items); }
  static std::vector<float> LogitsOf(const History& history) {
    return {history.AllLogits().begin(), history.AllLogits().end()};
  }

  const LoadedModel model_;
  const std::shared_ptr<Workers> workers_;
  StepRunner runner_;
};

TEST_F(StepRunnerTest, NothingToDoIsDone) { EXPECT_TRUE(Run({}).ok()); }

TEST_F(StepRunnerTest, EachGetsWhatItWouldGetAlone) {
  const Ids prompt = {1, 2, 3, 4, 5}, one = {9}, guesses = {7, 8};
  History together[3] = {New(), New(), New()};
  ASSERT_TRUE(Run({{&together[0], prompt, LogitRows::kLast},
                   {&together[1], one, LogitRows::kLast},
                   {&together[2], guesses, LogitRows::kAll}})
                  .ok());
  History alone[3] = {New(), New(), New()};
  ASSERT_TRUE(Run({{&alone[0], prompt, LogitRows::kLast}}).ok());
  ASSERT_TRUE(Run({{&alone[1], one, LogitRows::kLast}}).ok());
  ASSERT_TRUE(Run({{&alone[2], guesses, LogitRows::kAll}}).ok());
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(together[i].n_logits(), i == 2 ? 2 : 1);
    EXPECT_EQ(LogitsOf(together[i]), LogitsOf(alone[i])) << i;
  }
}

TEST_F(StepRunnerTest, WhatFailsForOneChangesNone) {
  History good = New(), bad = New();
  ASSERT_TRUE(Run({{&good, Ids{1, 2}, LogitRows::kLast},
                   {&bad, Ids{1, 2}, LogitRows::kLast}})
                  .ok());
  const std::vector<float> before = LogitsOf(good);
  const std::int32_t foreign = model_.config.vocab_size;
  const auto failed = Run({{&good, Ids{3}, LogitRows::kLast},
                           {&bad, Ids{3, foreign}, LogitRows::kLast}});
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().code, Code::kInvalidArgument);
  for (const History* history : {&good, &bad}) {
    EXPECT_EQ(history->n_tokens(), 2);
    EXPECT_EQ(history->kv().n_tokens(), 2);
    EXPECT_EQ(LogitsOf(*history), before);
  }
  // And both go on as if it had not been.
  ASSERT_TRUE(Run({{&good, Ids{3, 4}, LogitRows::kLast},
                   {&bad, Ids{3, 4}, LogitRows::kLast}})
                  .ok());
  EXPECT_EQ(LogitsOf(good), LogitsOf(bad));
}

TEST_F(StepRunnerTest, HiddenRowsComeWhenTheyAreKept) {
  History without = New(), with = New();
  ASSERT_TRUE(Run({{&without, Ids{1, 2}, LogitRows::kLast}}).ok());
  EXPECT_TRUE(without.Hidden(0).empty());
  runner_.KeepHidden();
  ASSERT_TRUE(Run({{&with, Ids{1, 2}, LogitRows::kAll}}).ok());
  for (const int row : {0, 1}) {
    EXPECT_EQ(with.Hidden(row).size(),
              static_cast<std::size_t>(model_.config.d_model));
  }
}

}  // namespace
}  // namespace hearth
