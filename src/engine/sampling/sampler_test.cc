#include "engine/sampling/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "engine/sampling/check_sampling.h"

namespace hearth {
namespace {

std::map<int, double> Frequencies(const SamplingOptions& options,
                                  const std::vector<float>& logits) {
  Sampler sampler(options);
  std::map<int, double> counts;
  constexpr int kDraws = 20000;
  for (int i = 0; i < kDraws; ++i)
    counts[*sampler.Sample(logits, {})] += 1.0 / kDraws;
  return counts;
}

TEST(Sampler, GreedyTakesTheFirstLargest) {
  Sampler sampler({.temperature = 0});
  EXPECT_EQ(*sampler.Sample(std::vector<float>{1, 3, 3, 2}, {}), 1);
}

TEST(Sampler, DrawsWithTheSoftmaxProbabilities) {
  const std::vector<float> logits = {0.0f, 1.0f, 2.0f};
  const auto f = Frequencies({.temperature = 1, .seed = 7}, logits);
  const double total = 1 + std::exp(1.0) + std::exp(2.0);
  EXPECT_NEAR(f.at(0), 1 / total, 0.02);
  EXPECT_NEAR(f.at(1), std::exp(1.0) / total, 0.02);
  EXPECT_NEAR(f.at(2), std::exp(2.0) / total, 0.02);
}

TEST(Sampler, TopKTopPAndMinPCutTheTail) {
  const std::vector<float> logits = {5, 4, 3, 0, -9};
  EXPECT_EQ(Frequencies({.temperature = 1, .top_k = 2}, logits).size(), 2u);
  // p = 0.66, 0.24, 0.09, ...: 0.8 needs two.
  EXPECT_EQ(Frequencies({.temperature = 1, .top_p = 0.8}, logits).size(), 2u);
  EXPECT_EQ(Frequencies({.temperature = 1, .min_p = 0.1}, logits).size(), 3u);
}

TEST(Sampler, SeedFixesTheDraws) {
  const std::vector<float> logits(50, 0.0f);
  Sampler a({.temperature = 1, .seed = 3}), b({.temperature = 1, .seed = 3}),
      c({.temperature = 1, .seed = 4});
  bool differs = false;
  for (int i = 0; i < 20; ++i) {
    const auto x = *a.Sample(logits, {});
    EXPECT_EQ(x, *b.Sample(logits, {}));
    differs |= x != *c.Sample(logits, {});
  }
  EXPECT_TRUE(differs);
}

TEST(Sampler, NotANumberIsNeverDrawn) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto f = Frequencies({.temperature = 1}, {nan, 1, nan, 1});
  EXPECT_EQ(f.count(0) + f.count(2), 0u);
}

// Pearson's statistic of speculative sampling against p, over many draws.
double ChiSquare(const SamplingOptions& options,
                 const std::vector<float>& p_logits,
                 const std::vector<float>& q_logits, std::size_t& n_outcomes) {
  Sampler sampler(options);
  Distribution p, q;
  sampler.Filter(p_logits, {}, p);
  sampler.Filter(q_logits, {}, q);
  std::map<std::int32_t, int> counts;
  constexpr int kDraws = 40000;
  for (int i = 0; i < kDraws; ++i) {
    ++counts[sampler.AcceptOrDraw(p, q, sampler.Draw(q))];
  }
  double chi2 = 0;
  for (const auto& c : p.candidates) {
    const double expected = kDraws * p.Of(c.id);
    chi2 += (counts[c.id] - expected) * (counts[c.id] - expected) / expected;
  }
  n_outcomes = p.candidates.size();
  EXPECT_LE(counts.size(), n_outcomes) << "a token that p filters out";
  return chi2;
}

TEST(Sampler, SpeculativeSamplingHasTheTargetsFilteredDistribution) {
  const std::vector<float> target = {0, 2, 1.5f, -1, 0.5f, 1, -3, 0.2f};
  const std::vector<std::vector<float>> drafts = {
      target,                                    // the same
      {1, 0.5f, 1.5f, 2, -1, 0, 1, -2},          // another
      {9, -9, -9, -9, -9, -9, -9, -9},           // nearly certain, and wrong
      {-50, -50, -50, -50, -50, -50, 20, -50}};  // outside the filtered p
  const SamplingOptions options[] = {
      {.temperature = 1, .seed = 1},
      {.temperature = 0.7, .top_k = 4, .seed = 2},
      {.temperature = 1.3, .top_p = 0.8, .seed = 3},
      {.temperature = 1, .top_k = 6, .top_p = 0.95, .min_p = 0.1, .seed = 4}};
  for (const auto& option : options) {
    for (const auto& draft : drafts) {
      std::size_t n = 0;
      const double chi2 = ChiSquare(option, target, draft, n);
      const double freedom = static_cast<double>(n) - 1;
      EXPECT_LT(chi2, freedom + 4 * std::sqrt(2 * freedom)) << option.seed;
    }
  }
}

TEST(Sampler, SpeculativeSamplingKeepsADraftOfTheSameDistribution) {
  Sampler sampler({.temperature = 1, .top_k = 3, .seed = 9});
  Distribution p;
  sampler.Filter(std::vector<float>{1, 2, 3, 4}, {}, p);
  for (int i = 0; i < 200; ++i) {
    const std::int32_t draft = sampler.Draw(p);
    EXPECT_EQ(sampler.AcceptOrDraw(p, p, draft), draft);
  }
}

TEST(Sampler, XtcLeavesOutTopChoicesWithItsProbability) {
  // p = 0.64, 0.24, 0.09, 0.03.
  const std::vector<float> logits = {5, 4, 3, 2};
  const SamplingOptions always{
      .temperature = 1, .xtc_probability = 1, .xtc_threshold = 0.08};
  const auto f = Frequencies(always, logits);
  EXPECT_EQ(f.count(0) + f.count(1), 0u) << "but for the least of the three";
  EXPECT_NEAR(f.at(2), 0.09 / 0.12, 0.05);
  SamplingOptions half = always;
  half.xtc_probability = 0.5;
  EXPECT_NEAR(Frequencies(half, logits).at(0), 0.64 / 2, 0.02);
  SamplingOptions alone = always;
  alone.xtc_threshold = 0.3;  // one token alone is never left out
  EXPECT_NEAR(Frequencies(alone, logits).at(0), 0.64, 0.02);
  SamplingOptions greedy = always;
  greedy.temperature = 0;
  EXPECT_NEAR(Frequencies(greedy, logits).at(0), 1, 1e-6) << "does nothing";
}

TEST(Sampler, BiasAndSuppressionDecideWhatComes) {
  const std::vector<float> logits = {1, 3, 2};
  const auto greedy = [&](SamplingOptions options) {
    options.temperature = 0;
    return *Sampler(options).Sample(logits, {});
  };
  EXPECT_EQ(greedy({.logit_bias = {{0, 2.5}}}), 0);
  EXPECT_EQ(greedy({.logit_bias = {{1, -2}}}), 2);
  EXPECT_EQ(greedy({.suppressed_ids = {1}}), 2);
  const double never = -std::numeric_limits<double>::infinity();
  EXPECT_EQ(greedy({.logit_bias = {{1, never}, {2, never}}}), 0);
  EXPECT_EQ(greedy({.logit_bias = {{0, 1e308}}}), 0);
  EXPECT_EQ(greedy({.suppressed_ids = {0, 1, 2}}), 1) << "nothing else is left";
  const auto f = Frequencies({.temperature = 1, .suppressed_ids = {1}}, logits);
  EXPECT_EQ(f.count(1), 0u);
}

TEST(Sampler, RefusesNonsense) {
  const auto refuses = [](const SamplingOptions& options) {
    return !CheckSampling(options, 10).ok();
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(refuses({.temperature = -1}));
  EXPECT_TRUE(refuses({.top_k = -1}));
  EXPECT_TRUE(refuses({.top_p = -0.1}));
  EXPECT_TRUE(refuses({.min_p = 1.1}));
  EXPECT_TRUE(refuses({.logit_bias = {{10, 1}}}));
  EXPECT_TRUE(refuses({.logit_bias = {{1, nan}}}));
  EXPECT_TRUE(refuses({.logit_bias = {{1, -nan}}}));
  EXPECT_TRUE(refuses({.suppressed_ids = {-1}}));
  EXPECT_TRUE(refuses({.repeat_penalty = 0}));
  EXPECT_TRUE(refuses({.repeat_last_n = -2}));
  EXPECT_TRUE(refuses({.presence_penalty = nan}));
  EXPECT_TRUE(refuses({.frequency_penalty = nan}));
  EXPECT_TRUE(refuses({.dry_multiplier = -1}));
  EXPECT_TRUE(refuses({.dry_base = 0.5}));
  EXPECT_TRUE(refuses({.dry_allowed_length = 0}));
  EXPECT_TRUE(refuses({.dry_penalty_last_n = -2}));
  EXPECT_TRUE(refuses({.dry_sequence_breakers = {""}}));
  EXPECT_TRUE(refuses({.xtc_probability = 1.5}));
  EXPECT_TRUE(refuses({.xtc_threshold = -1}));
  EXPECT_FALSE(refuses({}));
  EXPECT_FALSE(refuses({.top_p = 0, .min_p = 1}));
}

TEST(DefaultSampling, IsTheModelsWhereItSaysSomething) {
  const SamplingOptions plain = DefaultSampling({});
  EXPECT_EQ(plain.temperature, 0.8);
  EXPECT_EQ(plain.top_k, 40);
  EXPECT_EQ(plain.repeat_penalty, 1);
  EXPECT_EQ(plain.repeat_last_n, 64);
  const SamplingOptions own = DefaultSampling(
      {.temperature = 0.6, .repetition_penalty = 1.1, .suppressed_ids = {3}});
  EXPECT_EQ(own.temperature, 0.6);
  EXPECT_EQ(own.repeat_penalty, 1.1);
  EXPECT_EQ(own.repeat_last_n, -1);
  EXPECT_EQ(own.suppressed_ids, std::vector<std::int32_t>{3});
  EXPECT_EQ(DefaultSampling({.repetition_tokens = 9}).repeat_last_n, 9);
}

}  // namespace
}  // namespace hearth
