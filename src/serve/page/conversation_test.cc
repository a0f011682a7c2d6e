#include "serve/page/conversation.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace hearth::serve {
namespace {

std::vector<std::int32_t> Ids(int n) {
  std::vector<std::int32_t> ids(static_cast<std::size_t>(n));
  std::iota(ids.begin(), ids.end(), 100);
  return ids;
}

bool GoesOn(const std::vector<std::int32_t>& earlier,
            const std::vector<std::int32_t>& later) {
  return PromptTrace(earlier, 16).GoesOnIn(later, PromptTrace(later, 16));
}

TEST(PromptTrace, EveryPromptGoesOnInItselfAndInLongerOnes) {
  for (int n = 1; n < 100; ++n) {
    EXPECT_TRUE(GoesOn(Ids(n), Ids(n))) << n;
    EXPECT_TRUE(GoesOn(Ids(n), Ids(n + 37))) << n;
  }
}

TEST(PromptTrace, NothingGoesOnWithAnEmptyPrompt) {
  EXPECT_FALSE(GoesOn({}, Ids(10)));
  EXPECT_FALSE(GoesOn(Ids(10), {}));
}

TEST(PromptTrace, ADifferenceAnywhereButAtTheEndIsAnotherConversation) {
  const auto earlier = Ids(100);
  for (std::size_t at = 0; at < 84; ++at) {
    auto later = Ids(150);
    later[at] = -1;
    EXPECT_FALSE(GoesOn(earlier, later)) << at;
  }
}

TEST(PromptTrace, WhatATemplatePutsAtTheEndMayDiffer) {
  const auto earlier = Ids(100);
  for (std::size_t at = 84; at < 100; ++at) {
    auto later = Ids(150);
    later[at] = -1;
    EXPECT_TRUE(GoesOn(earlier, later)) << at;
  }
}

TEST(PromptTrace, AShorterPromptDoesNotGoOnWithALongerOne) {
  EXPECT_FALSE(GoesOn(Ids(100), Ids(60)));
}

}  // namespace
}  // namespace hearth::serve
