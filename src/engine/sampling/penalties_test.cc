#include "engine/sampling/penalties.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "engine/sampling/dry.h"

namespace hearth {
namespace {

using Ids = std::vector<std::int32_t>;

std::vector<float> Penalised(const SamplingOptions& options, const Ids& before,
                             std::vector<float> logits) {
  EXPECT_TRUE(HasPenalties(options));
  Penalise(options, before, logits);
  return logits;
}

TEST(Penalties, RepeatMakesWhatCameLessLikelyWhateverItsSign) {
  EXPECT_EQ(Penalised({.repeat_penalty = 2}, {0, 1, 0}, {4, -4, 4, 0}),
            (std::vector<float>{2, -8, 4, 0}));
}

TEST(Penalties, FrequencyCountsAndPresenceDoesNot) {
  EXPECT_EQ(Penalised({.presence_penalty = 1, .frequency_penalty = 0.5},
                      {0, 1, 0}, {4, 4, 4}),
            (std::vector<float>{2, 2.5, 4}));
  EXPECT_EQ(Penalised({.presence_penalty = -1}, {0}, {4, 4}),
            (std::vector<float>{5, 4}));
}

TEST(Penalties, LookAtTheNewestTokensOfTheWindow) {
  const Ids before = {0, 1, 2};
  SamplingOptions options{.repeat_last_n = 2, .presence_penalty = 1};
  EXPECT_EQ(Penalised(options, before, {0, 0, 0}),
            (std::vector<float>{0, -1, -1}));
  options.repeat_last_n = -1;
  EXPECT_EQ(Penalised(options, before, {0, 0, 0}),
            (std::vector<float>{-1, -1, -1}));
  options.repeat_last_n = 0;
  EXPECT_FALSE(HasPenalties(options));
  EXPECT_EQ(Penalised({.presence_penalty = 1}, {7}, {0}), std::vector<float>{0})
      << "an id that the logits do not have";
}

TEST(Penalties, StayFinite) {
  const auto out = Penalised(
      {.repeat_penalty = 1e-300, .frequency_penalty = -1e308}, {0}, {1e30f});
  EXPECT_TRUE(std::isfinite(out[0]));
}

// The definition, tried for every token and every place.
std::vector<float> DryByDefinition(const SamplingOptions& options,
                                   const Ids& tokens, int longest,
                                   std::vector<float> logits) {
  const auto n = static_cast<int>(tokens.size());
  std::vector<int> best(logits.size(), 0);
  for (int end = 1; end < n; ++end) {  // tokens[end] followed
    int length = 0;
    while (length < end && length < longest &&
           tokens[static_cast<std::size_t>(end - 1 - length)] ==
               tokens[static_cast<std::size_t>(n - 1 - length)]) {
      ++length;
    }
    int& most =
        best[static_cast<std::size_t>(tokens[static_cast<std::size_t>(end)])];
    most = std::max(most, length);
  }
  for (std::size_t id = 0; id < logits.size(); ++id) {
    if (best[id] < options.dry_allowed_length) continue;
    logits[id] = static_cast<float>(
        logits[id] -
        options.dry_multiplier *
            std::pow(options.dry_base, best[id] - options.dry_allowed_length));
  }
  return logits;
}

TEST(Dry, IsItsDefinition) {
  std::mt19937 random(3);
  const SamplingOptions options{.dry_multiplier = 0.8};
  const auto tokenizer = MakeByteTokenizer();
  for (int round = 0; round < 2000; ++round) {
    // Few letters, so that repetitions are long; one in nine is a breaker.
    Ids tokens;
    const std::size_t n = random() % 40;
    for (std::size_t i = 0; i < n; ++i) {
      tokens.push_back(std::string("aaaabbbc:")[random() % 9]);
    }
    const int longest =
        TokensBehindBreaker(options.dry_sequence_breakers, *tokenizer, tokens);
    const auto colon = std::find(tokens.rbegin(), tokens.rend(), ':');
    EXPECT_EQ(longest, colon - tokens.rbegin());
    std::vector<float> logits(256, 1.0f);
    PenaliseRepetitions(options, tokenizer.get(), tokens, logits);
    EXPECT_EQ(logits, DryByDefinition(options, tokens, longest,
                                      std::vector<float>(256, 1.0f)));
    std::vector<float> unbroken(256, 1.0f);
    PenaliseRepetitions(options, nullptr, tokens, unbroken);
    EXPECT_EQ(unbroken, DryByDefinition(options, tokens, static_cast<int>(n),
                                        std::vector<float>(256, 1.0f)));
  }
}

TEST(Dry, BreakersMaySpanTokens) {
  const auto tokenizer = MakeByteTokenizer();
  const auto behind = [&](const std::vector<std::string>& breakers,
                          const std::string& text) {
    return TokensBehindBreaker(breakers, *tokenizer,
                               Ids(text.begin(), text.end()));
  };
  EXPECT_EQ(behind({"END"}, "ab END cd"), 3);
  EXPECT_EQ(behind({"END"}, "ab END"), 0);
  EXPECT_EQ(behind({"END"}, "ab EN"), 5);
  EXPECT_EQ(behind({"END", "\n"}, "x\nab END c"), 2);
  EXPECT_EQ(behind({"END", "\n"}, "ab END\nc"), 1);
  EXPECT_EQ(behind({}, "abc"), 3);
  EXPECT_EQ(behind({"a"}, ""), 0);
}

TEST(Dry, ALongLoopStaysFinite) {
  const SamplingOptions options{.dry_multiplier = 5, .dry_base = 4};
  std::vector<float> logits(4, 0.0f);
  PenaliseRepetitions(options, nullptr, Ids(20000, 2), logits);
  EXPECT_TRUE(std::isfinite(logits[2]));
  EXPECT_LT(logits[2], -1e30f);
  EXPECT_EQ(logits[1], 0);
}

}  // namespace
}  // namespace hearth
