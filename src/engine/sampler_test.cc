#include "engine/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

namespace hearth {
namespace {

std::map<int, double> Frequencies(const SamplingOptions& options,
                                  const std::vector<float>& logits) {
  Sampler sampler(options);
  std::map<int, double> counts;
  constexpr int kDraws = 20000;
  for (int i = 0; i < kDraws; ++i)
    counts[sampler.Sample(logits)] += 1.0 / kDraws;
  return counts;
}

TEST(Sampler, GreedyTakesTheFirstLargest) {
  Sampler sampler({.temperature = 0});
  EXPECT_EQ(sampler.Sample(std::vector<float>{1, 3, 3, 2}), 1);
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
    const auto x = a.Sample(logits);
    EXPECT_EQ(x, b.Sample(logits));
    differs |= x != c.Sample(logits);
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
  sampler.Filter(p_logits, p);
  sampler.Filter(q_logits, q);
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
  sampler.Filter(std::vector<float>{1, 2, 3, 4}, p);
  for (int i = 0; i < 200; ++i) {
    const std::int32_t draft = sampler.Draw(p);
    EXPECT_EQ(sampler.AcceptOrDraw(p, p, draft), draft);
  }
}

TEST(Sampler, RefusesNonsense) {
  EXPECT_FALSE(CheckSampling({.temperature = -1}).ok());
  EXPECT_FALSE(CheckSampling({.top_k = -1}).ok());
  EXPECT_FALSE(CheckSampling({.top_p = 0}).ok());
  EXPECT_FALSE(CheckSampling({.min_p = 1}).ok());
  EXPECT_TRUE(CheckSampling({}).ok());
}

}  // namespace
}  // namespace hearth
