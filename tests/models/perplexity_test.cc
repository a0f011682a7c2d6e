// Perplexity as llama-perplexity measures it, and as its definition says.
#include "hearth/perplexity.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "testing/expect_refused.h"
#include "testing/model_paths.h"
#include "testing/next_token.h"
#include "testing/story_text.h"

namespace hearth {
namespace {

std::unique_ptr<Engine> OpenStories() {
  auto engine = Engine::Open({.model_path = kStories260K});
  EXPECT_TRUE(engine.ok()) << engine.error().message;
  return std::move(*engine);
}

// llama-perplexity 0.7.0 with -c 64 prints "PPL = 10.3556 +/- 3.13639".
TEST(Perplexity, IsThatOfLlamaPerplexity) {
  const auto engine = OpenStories();
  const auto report =
      MeasurePerplexity(*engine, kStory, {.context_tokens = 64});
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_NEAR(report->perplexity, 10.3556, 0.002);
  EXPECT_NEAR(report->perplexity_error, 3.13639, 0.002);
  EXPECT_EQ(report->n_text_tokens, 277);
  EXPECT_EQ(report->n_chunks, 4);
  EXPECT_EQ(report->n_counted_tokens, 4 * 31);
  EXPECT_TRUE(report->begins_with_bos);
}

TEST(Perplexity, IsWhatItsDefinitionSays) {
  const auto engine = OpenStories();
  // Chunks of 100 go five at a time; the text has two of them.
  std::vector<std::int64_t> told;
  const auto report = MeasurePerplexity(
      *engine, kStory,
      {.context_tokens = 100,
       .progress = [&](std::int64_t done, std::int64_t total) {
         EXPECT_EQ(total, 2 * 99);
         told.push_back(done);
         return true;
       }});
  ASSERT_TRUE(report.ok()) << report.error().message;
  ASSERT_FALSE(told.empty());
  EXPECT_EQ(told.back(), 2 * 99);
  const auto ids = engine->codec().Encode(kStory, /*special=*/true).value();
  const auto vocab = static_cast<std::size_t>(engine->info().vocab_size);
  std::vector<double> surprises;
  for (std::size_t chunk = 0; chunk < 2; ++chunk) {
    std::vector<std::int32_t> tokens(ids.begin() + 100 * chunk,
                                     ids.begin() + 100 * (chunk + 1));
    tokens[0] = 1;  // BOS
    const auto logits = engine->Logits(tokens, {}).value();
    for (std::size_t t = 50; t < 99; ++t) {
      const auto p = LogSoftmax({logits.data() + t * vocab, vocab});
      surprises.push_back(-p[static_cast<std::size_t>(tokens[t + 1])]);
    }
  }
  double sum = 0, squares = 0;
  for (const double s : surprises) sum += s, squares += s * s;
  const auto n = static_cast<double>(surprises.size());
  const double variance = squares / n - sum / n * (sum / n);
  EXPECT_EQ(report->n_counted_tokens, 98);
  EXPECT_NEAR(report->nats, sum / n, 1e-6);
  EXPECT_NEAR(report->nats_error, std::sqrt(variance / (n - 1)), 1e-6);
  EXPECT_NEAR(report->perplexity, std::exp(sum / n), 1e-4);
}

TEST(Perplexity, WhatCannotBeMeasuredIsRefused) {
  const auto engine = OpenStories();
  const auto measure = [&](std::string_view text, int context) {
    return MeasurePerplexity(*engine, text, {.context_tokens = context});
  };
  ExpectRefused(measure("Once upon a time", 64), Code::kInvalidArgument,
                "tokens and a chunk is 64");
  ExpectRefused(measure("", 0), Code::kInvalidArgument, "a chunk is 512");
  ExpectRefused(measure(kStory, 3), Code::kInvalidArgument,
                "use 4 to 512, the context");
  ExpectRefused(measure(kStory, 513), Code::kInvalidArgument,
                "use 4 to 512, the context");
  const auto stopped = MeasurePerplexity(
      *engine, kStory,
      {.context_tokens = 64,
       .progress = [](std::int64_t, std::int64_t) { return false; }});
  ExpectRefused(stopped, Code::kCancelled, "stopped");
}

}  // namespace
}  // namespace hearth
