#include "engine/session/session_use.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace hearth {
namespace {

bool EnterFromAnotherThread(SessionUse& use) {
  bool entered = false;
  std::thread([&] {
    entered = use.Enter();
    if (entered) use.Leave();
  }).join();
  return entered;
}

TEST(SessionUse, CallsOfOneThreadNest) {
  SessionUse use;
  ASSERT_TRUE(use.Enter());
  EXPECT_TRUE(use.outermost());
  ASSERT_TRUE(use.Enter());
  EXPECT_FALSE(use.outermost());
  use.Leave();
  EXPECT_TRUE(use.outermost());
  use.Leave();
}

TEST(SessionUse, ASecondThreadIsRefusedUntilTheFirstHasLeft) {
  SessionUse use;
  ASSERT_TRUE(use.Enter());
  ASSERT_TRUE(use.Enter());
  EXPECT_FALSE(EnterFromAnotherThread(use));
  use.Leave();
  EXPECT_FALSE(EnterFromAnotherThread(use)) << "the outer call is inside still";
  use.Leave();
  EXPECT_TRUE(EnterFromAnotherThread(use));
  EXPECT_TRUE(use.Enter()) << "whoever was refused has left no trace";
  use.Leave();
}

TEST(SessionUse, TheBudgetGetsItOnlyWhileNobodyIsInside) {
  SessionUse use;
  ASSERT_TRUE(use.Enter());
  EXPECT_FALSE(use.TryClaim());
  use.Leave();
  ASSERT_TRUE(use.TryClaim());
  EXPECT_FALSE(use.TryClaim()) << "one at a time";
  use.Unclaim();
  EXPECT_TRUE(use.TryClaim());
  use.Unclaim();
}

TEST(SessionUse, WhoEntersWaitsForTheBudget) {
  SessionUse use;
  ASSERT_TRUE(use.TryClaim());
  std::atomic<bool> unclaimed = false;
  std::atomic<bool> entered_after = false;
  std::thread user([&] {
    ASSERT_TRUE(use.Enter());
    entered_after = unclaimed.load();
    use.Leave();
  });
  std::this_thread::yield();
  unclaimed = true;
  use.Unclaim();
  user.join();
  EXPECT_TRUE(entered_after);
}

}  // namespace
}  // namespace hearth
