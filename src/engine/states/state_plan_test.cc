#include "engine/states/state_plan.h"

#include <gtest/gtest.h>

#include <vector>

namespace hearth {
namespace {

using Stops = std::vector<int>;

// States of 64 KiB beside keys and values of 64 bytes a token: a grid of 2,048.
KvSpec Spec(KvFormat format = KvFormat::kF32) {
  KvSpec spec(UniformKv{
      .n_layers = 1, .n_heads = 1, .head_dim = 8, .block_tokens = 64});
  spec.SetFormat(format);
  spec.states = {{StateRule::kDeltaNet, {1, 128, 128}}};
  return spec;
}

TEST(StatePlan, TheGridWeighsStatesAgainstKeysAndValues) {
  EXPECT_EQ(StateGrid(Spec()), 2048);
  KvSpec large = Spec();
  large.states[0].dims[0] = 100;
  EXPECT_EQ(StateGrid(large), 8192) << "at most";
  KvSpec small = Spec();
  small.states = {{StateRule::kLastInputs, {2, 8}}};
  EXPECT_EQ(StateGrid(small), 512) << "at least";
  small.block_tokens = 48;
  EXPECT_EQ(StateGrid(small) % 48, 0);
}

TEST(StatePlan, APromptWithoutMarksIsKeptInFrontOfItsLastToken) {
  EXPECT_EQ(PlanStates(Spec(), {.n_total = 100}), Stops{99});
  EXPECT_EQ(PlanStates(Spec(), {.n_have = 99, .n_total = 100}), Stops{});
  EXPECT_EQ(PlanStates(Spec(), {.n_total = 1}), Stops{});
}

TEST(StatePlan, MarksAreTheFirstTheLastTwoAndPowersOfTwoBack) {
  Stops marks;
  for (int i = 1; i <= 20; ++i) marks.push_back(i * 50);
  EXPECT_EQ(PlanStates(Spec(), {.n_total = 1500, .marks = marks}),
            (Stops{50, 250, 650, 850, 950, 1000, 1499}));
  EXPECT_EQ(
      PlanStates(Spec(), {.n_have = 900, .n_total = 1010, .marks = marks}),
      (Stops{950, 1000}))
      << "a mark close to the end does for it";
}

TEST(StatePlan, TheGridAndTheBranchAreKept) {
  EXPECT_EQ(
      PlanStates(Spec(), {.n_have = 100, .n_total = 5000, .n_branch = 704}),
      (Stops{704, 2048, 4096, 4999}));
  EXPECT_EQ(PlanStates(Spec(), {.n_have = 2048, .n_total = 4000}), Stops{3999});
}

TEST(StatePlan, OfQuantisedBlocksTheirEndsAreKept) {
  const Stops marks = {100, 200};
  EXPECT_EQ(PlanStates(Spec(KvFormat::kInt8), {.n_total = 300, .marks = marks}),
            (Stops{64, 192, 256, 299}));
}

}  // namespace
}  // namespace hearth
