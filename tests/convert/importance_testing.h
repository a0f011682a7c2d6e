// What the tests of importance matrices share.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "hearth/engine.h"
#include "hearth/importance.h"
#include "testing/model_paths.h"

namespace hearth {

// The text that tests/data/models/imatrix was computed from, in chunks of 64
// tokens.
inline constexpr char kStory[] =
    "Once upon a time there was a little girl named Lily. She lived in a small "
    "house near\nthe woods with her mom and her dog. Every day Lily went out "
    "to play in the garden. One\nmorning she saw a big red ball under a tree. "
    "\"Whose ball is this?\" she asked. The dog\nran to the ball and barked. "
    "Lily was very happy. She threw the ball high up into the\nsky and the dog "
    "jumped to catch it. Then a boy came to the fence. He looked sad. \"I\n"
    "lost my ball,\" he said. Lily gave him the ball and smiled. \"We can play "
    "with it\ntogether,\" she said. The boy was not sad any more. They played "
    "all day long, and when\nthe sun went down they were good friends.\n";

inline ImportanceMatrix Measured() {
  const auto engine = Engine::Open({.model_path = kStories260K});
  EXPECT_TRUE(engine.ok()) << engine.error().message;
  const auto report = MeasureImportance(
      **engine, kStory, {.context_tokens = 64, .dataset = "story.txt"});
  EXPECT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(report->n_computed_tokens, 256);
  return report->matrix;
}

inline const ImportanceEntry* Find(const ImportanceMatrix& matrix,
                                   const std::string& name) {
  for (const ImportanceEntry& entry : matrix.entries) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

}  // namespace hearth
