#include "engine/draft/speculation.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

std::vector<std::int32_t> Lookup(const std::vector<std::int32_t>& tokens,
                                 int n) {
  auto drafter = *MakePromptLookup()->NewDrafter({});
  Sampler sampler({.temperature = 0});
  std::vector<DraftToken> drafts;
  EXPECT_TRUE(drafter->Propose({tokens, {}, n, sampler, nullptr}, drafts).ok());
  std::vector<std::int32_t> ids;
  for (const DraftToken& draft : drafts) ids.push_back(draft.id);
  return ids;
}

using Ids = std::vector<std::int32_t>;

TEST(PromptLookup, RepeatsWhatFollowedTheLongestMatch) {
  // "3 4 5" came twice; "2 3 4 5" is longer.
  EXPECT_EQ(Lookup({1, 2, 3, 4, 5, 6, 7, 9, 3, 4, 5, 8, 2, 3, 4, 5}, 4),
            (Ids{6, 7, 9, 3}));
  // Of two equal ones the latest.
  EXPECT_EQ(Lookup({1, 3, 4, 5, 6, 7, 0, 3, 4, 5, 8, 8, 2, 3, 4, 5}, 2),
            (Ids{8, 8}));
}

TEST(PromptLookup, GuessesNoMoreThanTheMatchSpeaksFor) {
  EXPECT_EQ(Lookup({3, 4, 5, 6, 7, 8, 9, 1, 3, 4, 5}, 8), (Ids{6, 7, 8}));
  EXPECT_EQ(Lookup({4, 5, 6, 7, 8, 9, 1, 4, 5}, 8), Ids{}) << "two are chance";
  EXPECT_EQ(Lookup({4}, 8), Ids{});
}

TEST(PromptLookup, LoopsGoOn) {
  EXPECT_EQ(Lookup({1, 2, 1, 2, 1, 2, 1}, 5), (Ids{2, 1, 2, 1, 2}));
  EXPECT_EQ(Lookup(Ids(100, 7), 3), (Ids{7, 7, 7}));
}

TEST(DraftLength, FollowsWhatWasRight) {
  DraftLength length(8);
  EXPECT_EQ(length.Next(), 4);
  length.Report(4, 4);
  EXPECT_EQ(length.Next(), 8);
  length.Report(8, 2);
  EXPECT_EQ(length.Next(), 3);
}

TEST(DraftLength, HopelessGuessingIsGivenUpForLongerAndLonger) {
  DraftLength length(8);
  int n_guesses = 0;
  for (int step = 0; step < 1000; ++step) {
    if (const int n = length.Next(); n > 0) {
      n_guesses += n;
      length.Report(n, 0);
    }
  }
  EXPECT_LT(n_guesses, 50);
  int n_waited = 0;
  while (length.Next() == 0) ++n_waited;
  EXPECT_LE(n_waited, 32) << "it tries again";
  length.Report(1, 1);
  EXPECT_EQ(length.Next(), 2);
}

}  // namespace
}  // namespace hearth
