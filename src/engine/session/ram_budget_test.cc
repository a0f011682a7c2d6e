#include "engine/session/ram_budget.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

struct Holder final : KvHolder {
  explicit Holder(RamBudget& of) : budget(of) { budget.Add(*this); }
  ~Holder() override { budget.Remove(*this); }
  bool TryClaim() override { return idle; }
  void Unclaim() override {}
  std::uint64_t LetGo() override { return bytes = 0; }
  Result<void> Grow(std::uint64_t n) {
    HEARTH_TRY(budget.MakeRoom(*this, bytes, n));
    bytes += n;
    return {};
  }
  RamBudget& budget;
  std::uint64_t bytes = 0;
  bool idle = true;
};

TEST(RamBudget, TheLongestIdleLetsGoFirst) {
  RamBudget budget(100);
  Holder a(budget), b(budget), c(budget);
  ASSERT_TRUE(a.Grow(40).ok());
  ASSERT_TRUE(b.Grow(40).ok());
  ASSERT_TRUE(a.Grow(10).ok());  // now b has rested longer
  ASSERT_TRUE(c.Grow(30).ok());
  EXPECT_EQ(a.bytes, 50u);
  EXPECT_EQ(b.bytes, 0u);
  EXPECT_EQ(c.bytes, 30u);
}

TEST(RamBudget, WhatCannotFitIsRefusedAndNobodyLetsGo) {
  RamBudget budget(100);
  Holder a(budget), b(budget), c(budget);
  ASSERT_TRUE(a.Grow(40).ok());
  ASSERT_TRUE(b.Grow(40).ok());
  b.idle = false;
  const auto refused = c.Grow(70);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::kResourceFull);
  EXPECT_NE(refused.error().message.find("budget"), std::string::npos);
  EXPECT_EQ(a.bytes, 40u);
  EXPECT_EQ(b.bytes, 40u);
  EXPECT_TRUE(c.Grow(60).ok());
  EXPECT_EQ(a.bytes, 0u);
}

TEST(RamBudget, WhatIsReservedCountsUntilItIsSettled) {
  RamBudget budget(100);
  Holder a(budget), b(budget);
  a.idle = false;
  ASSERT_TRUE(budget.MakeRoom(a, 0, 80).ok());
  EXPECT_FALSE(b.Grow(30).ok()) << "a will grow by what it asked for";
  budget.Settle(a, 60);
  EXPECT_TRUE(b.Grow(30).ok());
}

TEST(RamBudget, WithoutALimitNothingIsAsked) {
  RamBudget budget(0);
  Holder a(budget);
  EXPECT_TRUE(a.Grow(~0ull / 2).ok());
}

}  // namespace
}  // namespace hearth
