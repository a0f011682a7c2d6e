#include "engine/session/history.h"

#include <gtest/gtest.h>

#include "base/thread_pool.h"
#include "engine/session/step_runner.h"
#include "formats/loader.h"
#include "model/cpu/cpu_ops.h"
#include "testing/model_paths.h"
#include "testing/own_sequence.h"

namespace hearth {
namespace {

using Ids = std::vector<std::int32_t>;

class HistoryTest : public ::testing::Test {
 protected:
  HistoryTest()
      : model_(*LoadModel(kStories260K)),
        workers_(std::make_shared<Workers>(1, 1)),
        runner_(model_, workers_, MakeCpuOps(model_, workers_->pool)) {}

  History New() const {
    const KvSpec spec = UniformKv{.n_layers = model_.config.n_layers,
                                  .n_heads = model_.config.n_kv_heads,
                                  .head_dim = model_.config.head_dim,
                                  .block_tokens = 16};
    return History(OwnSequence(spec));
  }
  void Step(History& history, const Ids& tokens, LogitRows want) {
    const StepItem item{&history, tokens, want};
    const auto done = runner_.Run({&item, 1});
    ASSERT_TRUE(done.ok()) << done.error().message;
  }
  static Ids TokensOf(const History& history) {
    return {history.tokens().begin(), history.tokens().end()};
  }

  const LoadedModel model_;
  const std::shared_ptr<Workers> workers_;
  StepRunner runner_;
};

TEST_F(HistoryTest, TokensKvAndLogitsGoTogether) {
  History history = New();
  Step(history, {1, 2, 3}, LogitRows::kNone);
  EXPECT_EQ(TokensOf(history), (Ids{1, 2, 3}));
  EXPECT_TRUE(history.Logits().empty());
  Step(history, {4, 5}, LogitRows::kAll);
  EXPECT_EQ(history.n_logits(), 2);
  EXPECT_EQ(history.AllLogits().size(),
            2 * static_cast<std::size_t>(model_.config.vocab_size));
  EXPECT_EQ(history.kv().n_tokens(), 5);
  history.Rewind(4);
  EXPECT_EQ(TokensOf(history), (Ids{1, 2, 3, 4}));
  EXPECT_EQ(history.kv().n_tokens(), 4);
  EXPECT_TRUE(history.Logits().empty()) << "those of token 4 are not kept";
}

TEST_F(HistoryTest, KeptRowsAreThoseOfAStepThatEndedThere) {
  History all = New(), part = New();
  Step(all, {1, 2, 3, 4}, LogitRows::kAll);
  all.KeepRows(2);
  Step(part, {1, 2}, LogitRows::kLast);
  EXPECT_EQ(TokensOf(all), TokensOf(part));
  EXPECT_EQ(all.kv().n_tokens(), 2);
  ASSERT_EQ(all.n_logits(), 1);
  EXPECT_TRUE(std::equal(all.Logits().begin(), all.Logits().end(),
                         part.Logits().begin(), part.Logits().end()));
}

TEST_F(HistoryTest, AForkGoesItsOwnWay) {
  History history = New();
  Step(history, {1, 2, 3}, LogitRows::kLast);
  History fork = std::move(*history.Fork());
  EXPECT_EQ(fork.Logits().size(), history.Logits().size());
  Step(fork, {9}, LogitRows::kNone);
  EXPECT_EQ(TokensOf(history), (Ids{1, 2, 3}));
  EXPECT_EQ(history.CommonWith(Ids{1, 2, 9}), 2);
  EXPECT_EQ(fork.CommonWith(Ids{1, 2, 3, 9, 5}), 4);
}

TEST_F(HistoryTest, AFailedStepChangesNothing) {
  History history = New();
  Step(history, {1, 2, 3}, LogitRows::kLast);
  const std::vector<float> before(history.Logits().begin(),
                                  history.Logits().end());
  const Ids foreign = {7, -1};
  const StepItem item{&history, foreign, LogitRows::kAll};
  EXPECT_FALSE(runner_.Run({&item, 1}).ok());
  EXPECT_EQ(TokensOf(history), (Ids{1, 2, 3}));
  EXPECT_EQ(history.kv().n_tokens(), 3);
  EXPECT_TRUE(std::equal(before.begin(), before.end(), history.Logits().begin(),
                         history.Logits().end()));
}

}  // namespace
}  // namespace hearth
