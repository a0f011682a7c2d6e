#include "engine/session/ram_budget.h"

#include <gtest/gtest.h>

#include "testing/own_sequence.h"
#include "testing/tagged_tokens.h"

namespace hearth {
namespace {

constexpr int kBlock = 16;

KvSpec Spec() {
  return UniformKv{
      .n_layers = 1, .n_heads = 1, .head_dim = 4, .block_tokens = kBlock};
}

std::shared_ptr<BlockPool> PoolOf(int n_blocks) {
  return *MakeKvPool(
      Spec(), {},
      {.n_blocks = 16, .bytes_max = BytesOfBlocks(Spec(), n_blocks)});
}

// Sizes in blocks.
struct Holder final : KvHolder {
  Holder(RamBudget& of, std::shared_ptr<BlockPool> pool)
      : budget(of), sequence(MakeInPlaceSequence(std::move(pool), Spec())) {
    budget.Add(*this);
  }
  ~Holder() override { budget.Remove(*this); }
  bool TryClaim() override { return idle; }
  bool TryClaimInProgress() override { return true; }
  void Unclaim() override {}
  bool IsStored() override { return stored; }
  KvSequence& kv() override { return *sequence; }
  void Store() override { stored = has_store; }
  void ExchangeStored() override {
    if (!stored) return;
    for (int block = 0; block < sequence->n_blocks(); ++block) {
      const BlockImage image = *sequence->Image(block, kBlock);
      const auto copy = std::make_shared<std::vector<std::byte>>(
          image.payload.begin(), image.payload.end());
      const Digest id = Sha256().Field(ByteSpan(*copy)).Finish();
      sequence->Exchange(block, id, *copy, copy);
    }
  }
  void LetGo() override { sequence->Rewind(0); }
  Result<void> Grow(int n) {
    const int at = sequence->n_tokens();
    HEARTH_TRY(budget.MakeRoom(*this, at + n * kBlock, relief));
    const auto done = Append(*sequence, Range(at, at + n * kBlock));
    (void)sequence->Reserve(0);
    return done;
  }
  int size() const { return sequence->n_blocks(); }
  RamBudget& budget;
  std::unique_ptr<KvSequence> sequence;
  bool idle = true, has_store = false, stored = false;
  Relief relief = Relief::kWait;
};

TEST(RamBudget, TheLongestIdleLetsGoFirst) {
  const auto pool = PoolOf(10);
  RamBudget budget(pool);
  Holder a(budget, pool), b(budget, pool), c(budget, pool);
  ASSERT_TRUE(a.Grow(4).ok());
  ASSERT_TRUE(b.Grow(4).ok());
  ASSERT_TRUE(a.Grow(1).ok());  // now b has rested longer
  ASSERT_TRUE(c.Grow(3).ok());
  EXPECT_EQ(a.size(), 5);
  EXPECT_EQ(b.size(), 0);
  EXPECT_EQ(c.size(), 3);
}

TEST(RamBudget, WhatCannotFitIsRefusedAndNobodyLetsGo) {
  const auto pool = PoolOf(10);
  RamBudget budget(pool);
  Holder a(budget, pool), b(budget, pool), c(budget, pool);
  ASSERT_TRUE(a.Grow(4).ok());
  ASSERT_TRUE(b.Grow(4).ok());
  b.idle = false;
  const auto refused = c.Grow(7);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::kResourceFull);
  EXPECT_NE(refused.error().message.find("budget"), std::string::npos);
  EXPECT_EQ(a.size(), 4);
  EXPECT_EQ(b.size(), 4);
  EXPECT_TRUE(c.Grow(6).ok());
  EXPECT_EQ(a.size(), 0);
}

TEST(RamBudget, WhatIsPromisedCountsUntilItIsTakenBack) {
  const auto pool = PoolOf(10);
  RamBudget budget(pool);
  Holder a(budget, pool), b(budget, pool);
  a.idle = false;
  ASSERT_TRUE(budget.MakeRoom(a, 8 * kBlock, Relief::kWait).ok());
  EXPECT_FALSE(b.Grow(3).ok()) << "a will grow by what it asked for";
  (void)a.sequence->Reserve(0);
  EXPECT_TRUE(b.Grow(3).ok());
}

TEST(RamBudget, WhatTheStoreHasBecomesAMappingBeforeAnythingIsLost) {
  const auto pool = PoolOf(10);
  RamBudget budget(pool);
  Holder a(budget, pool), b(budget, pool);
  a.has_store = true;
  ASSERT_TRUE(a.Grow(6).ok());
  ASSERT_TRUE(b.Grow(8).ok());
  EXPECT_EQ(a.size(), 6);
  ExpectHolds(*a.sequence, Range(0, 6 * kBlock));
  // The one that asks does the same, though it is in use.
  b.idle = false;
  b.stored = true;
  ASSERT_TRUE(b.Grow(9).ok());
  ExpectHolds(*b.sequence, Range(0, 17 * kBlock));
}

TEST(RamBudget, WhatIsStoredOfSomebodyInProgressBecomesAMappingToo) {
  const auto pool = PoolOf(10);
  RamBudget budget(pool);
  Holder a(budget, pool), b(budget, pool);
  ASSERT_TRUE(a.Grow(6).ok());
  a.idle = false;
  EXPECT_FALSE(b.Grow(5).ok()) << "nothing of it is stored yet";
  a.stored = true;
  ASSERT_TRUE(b.Grow(5).ok());
  ExpectHolds(*a.sequence, Range(0, 6 * kBlock));
}

TEST(RamBudget, OnlyWhatIsStoredGoesForFree) {
  const auto pool = PoolOf(10);
  RamBudget budget(pool);
  Holder a(budget, pool), b(budget, pool);
  ASSERT_TRUE(a.Grow(6).ok());
  b.relief = Relief::kFree;
  EXPECT_FALSE(b.Grow(6).ok());
  EXPECT_EQ(a.size(), 6) << "it would be lost";
  b.relief = Relief::kResting;
  a.has_store = true;
  EXPECT_TRUE(b.Grow(6).ok());
  EXPECT_EQ(a.size(), 0);
  EXPECT_FALSE(a.stored) << "nobody waited for the store";
}

TEST(RamBudget, WhatIdleOnesShareWithOthersDoesNotCount) {
  const auto pool = PoolOf(10);
  RamBudget budget(pool);
  Holder a(budget, pool), b(budget, pool), c(budget, pool);
  ASSERT_TRUE(a.Grow(8).ok());
  b.sequence = *a.sequence->Fork();
  b.idle = false;
  EXPECT_FALSE(c.Grow(3).ok()) << "a's memory is b's, too";
  EXPECT_EQ(a.size(), 8);
  b.idle = true;
  EXPECT_TRUE(c.Grow(3).ok());
}

TEST(RamBudget, WithoutALimitNothingIsAsked) {
  const auto pool = *MakeKvPool(Spec(), {}, {.n_blocks = 16});
  RamBudget budget(pool), concat(nullptr);
  Holder a(budget, pool);
  EXPECT_TRUE(budget.MakeRoom(a, 1 << 30, Relief::kWait).ok());
  EXPECT_TRUE(concat.MakeRoom(a, 1 << 30, Relief::kWait).ok());
}

}  // namespace
}  // namespace hearth
