// What the tests of importance matrices share.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "hearth/engine.h"
#include "hearth/importance.h"
#include "testing/model_paths.h"
#include "testing/story_text.h"

namespace hearth {

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
