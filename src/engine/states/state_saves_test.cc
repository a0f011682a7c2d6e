#include "engine/states/state_saves.h"

#include <gtest/gtest.h>

#include <vector>

namespace hearth {
namespace {

using Places = std::vector<int>;
using When = StateSaves::When;

std::vector<StateCheckpointPtr> Kept(const Places& places) {
  std::vector<StateCheckpointPtr> kept;
  for (const int n : places) {
    kept.push_back(std::make_shared<StateCheckpoint>(
        StateCheckpoint{.n_tokens = n, .slab = nullptr, .tail = {}}));
  }
  return kept;
}

Places PlacesOf(const StatesToSave& chosen) {
  Places places;
  for (const auto& one : chosen.states) places.push_back(one->n_tokens);
  return places;
}

// Chooses of these, and saves them.
Places Save(StateSaves& saves, const Places& kept, int n_prompt, When when) {
  const auto chosen = saves.Choose(Kept(kept), 1 << 30, n_prompt, when);
  saves.NoteSaved(chosen);
  return PlacesOf(chosen);
}

TEST(StateSaves, APromptHasOneHoweverShortItIs) {
  StateSaves saves;
  EXPECT_EQ(Save(saves, {40, 99}, 100, When::kPrompt), Places{99});
  EXPECT_EQ(Save(saves, {40, 99}, 100, When::kPrompt), Places{});
}

TEST(StateSaves, WhileItGrowsAGapIsWorthAFile) {
  StateSaves saves;
  EXPECT_EQ(
      Save(saves, {100, 300, 900, 1323, 1324, 2000}, 5000, When::kGrowing),
      (Places{300, 1324}));
}

TEST(StateSaves, FiftyShortTurnsWriteThree) {
  StateSaves saves;
  int n_written = 0, n = 500;
  Places kept;
  for (int turn = 0; turn < 50; ++turn) {
    n += 40;
    kept.push_back(n - 1);
    n_written += static_cast<int>(Save(saves, kept, n, When::kPrompt).size());
  }
  EXPECT_EQ(n_written, 2);
  n_written += static_cast<int>(Save(saves, kept, n, When::kRest).size());
  EXPECT_EQ(n_written, 3);
}

TEST(StateSaves, AtRestTheNewestOfThePromptAndOfAllAreSaved) {
  StateSaves saves;
  EXPECT_EQ(Save(saves, {50, 90, 99, 140}, 100, When::kRest),
            (Places{99, 140}));
}

TEST(StateSaves, OlderOnesOfASessionAreDroppedButTheFirstAndTheGrid) {
  StateSaves saves(/*grid=*/4096);
  Places kept, dropped;
  for (int n = 1024; n <= 20 * 1024; n += 1024) {
    kept.push_back(n);
    const auto chosen =
        saves.Choose(Kept(kept), 1 << 30, 1 << 30, When::kGrowing);
    saves.NoteSaved(chosen);
    for (const int place : chosen.dropped) {
      dropped.push_back(place);
      std::erase(kept, place);
    }
  }
  EXPECT_FALSE(dropped.empty());
  for (const int place : dropped) {
    EXPECT_NE(place, 1024);
    EXPECT_NE(place % 4096, 0);
    EXPECT_LT(place, 17 * 1024);
    EXPECT_FALSE(saves.has(place));
  }
  EXPECT_TRUE(saves.has(20 * 1024));
}

TEST(StateSaves, WhatIsCutOffOrLostIsSavedAgain) {
  StateSaves saves;
  Save(saves, {300, 2000}, 3000, When::kGrowing);
  saves.NoteRewound(1500);
  EXPECT_EQ(saves.last(), 300);
  EXPECT_EQ(Save(saves, {300, 2000}, 3000, When::kGrowing), Places{2000});
  saves.Forget();
  EXPECT_EQ(Save(saves, {300}, 3000, When::kGrowing), Places{300});
}

TEST(StateSaves, AForkDropsNothingThatItDidNotWrite) {
  StateSaves saves;
  Places kept;
  for (int i = 1; i <= 8; ++i) kept.push_back(i * 1024);
  Save(saves, kept, 1 << 20, When::kGrowing);
  StateSaves fork = saves.Fork();
  kept.push_back(9 * 1024);
  EXPECT_TRUE(fork.Choose(Kept(kept), 1 << 30, 1 << 20, When::kGrowing)
                  .dropped.empty());
  EXPECT_FALSE(saves.Choose(Kept(kept), 1 << 30, 1 << 20, When::kGrowing)
                   .dropped.empty());
}

}  // namespace
}  // namespace hearth
