#include "engine/prompt_cache/load_choice.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

TEST(LoadChoice, SaysNothingBeforeBothWereMeasured) {
  LoadChoice choice{KvSpeeds{}};
  EXPECT_FALSE(choice.Predict(1000, 1 << 20).has_value());
  choice.NotePrefill(1000, 100);
  EXPECT_FALSE(choice.Predict(1000, 1 << 20).has_value());
  choice.NoteLoad(1 << 20, 1);
  EXPECT_TRUE(choice.Predict(1000, 1 << 20).has_value());
}

TEST(LoadChoice, ShortMeasurementsAreLeftOut) {
  LoadChoice choice{KvSpeeds{}};
  choice.NotePrefill(1, 100);
  choice.NoteLoad(100, 50);
  EXPECT_FALSE(choice.TakeChanged().has_value());
}

// R61: loading 8K tokens took 2,450 ms, computing them 1,725 ms.
TEST(LoadChoice, R61_WhatIsComputedFasterIsNotLoaded) {
  constexpr std::uint64_t kBytes = 8192 * 24576;
  LoadChoice choice{KvSpeeds{}};
  choice.NotePrefill(8192, 1725);
  choice.NoteLoad(kBytes, 2450);
  const auto slow = choice.Predict(8192, kBytes);
  EXPECT_NEAR(slow->load_ms, 2450, 1);
  EXPECT_NEAR(slow->compute_ms, 1725, 1);
  EXPECT_FALSE(slow->load_pays());
  EXPECT_EQ(Describe(8192, *slow),
            "loading 8192 tokens would take 2450 ms, computing them 1725 ms");
  // A difference that nobody notices is no reason.
  EXPECT_TRUE(choice.Predict(128, kBytes / 64)->load_pays());
  // The disk is as fast as ever: after a few declined loads one is tried.
  int n_declined = 0;
  while (!choice.Predict(8192, kBytes)->load_pays() && n_declined < 100) {
    choice.NoteDeclined();
    EXPECT_TRUE(choice.TakeChanged().has_value());
    ++n_declined;
  }
  EXPECT_EQ(n_declined, 4);
}

TEST(LoadChoice, SmallMovesAreNotKept) {
  LoadChoice choice({.load_bytes_per_s = 1e9, .prefill_tokens_per_s = 1000});
  choice.NotePrefill(1000, 900);
  choice.NoteLoad(1'000'000'000, 1100);
  EXPECT_FALSE(choice.TakeChanged().has_value());
  choice.NotePrefill(1000, 300);
  ASSERT_TRUE(choice.TakeChanged().has_value());
  EXPECT_FALSE(choice.TakeChanged().has_value());
}

}  // namespace
}  // namespace hearth
