#include "model/cpu/router.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace hearth {
namespace {

struct Chosen {
  std::vector<int> experts;
  std::vector<float> weights;
};

Chosen Choose(const std::vector<float>& scores, int n_used, RouterKind kind,
              const RouterRules& rules = {},
              const std::vector<float>& bias = {}) {
  const auto n = static_cast<std::size_t>(n_used);
  Chosen out{std::vector<int>(n), std::vector<float>(n)};
  ChooseExperts({kind, rules, static_cast<int>(scores.size()), n_used},
                scores.data(), bias.empty() ? nullptr : bias.data(),
                out.experts.data(), out.weights.data());
  return out;
}

TEST(ChooseExperts, TheLargestAreChosenAndListedByNumber) {
  const Chosen c = Choose({0, 3, 1, 2}, 2, RouterKind::kSoftmaxOfChosen);
  EXPECT_EQ(c.experts, (std::vector<int>{1, 3}));
  EXPECT_FLOAT_EQ(c.weights[0], 1 / (1 + std::exp(-1.0f)));
  EXPECT_FLOAT_EQ(c.weights[0] + c.weights[1], 1.0f);
}

TEST(ChooseExperts, SoftmaxOfAllCountsTheOthers) {
  const Chosen c = Choose({1, 1, 1, 1}, 2, RouterKind::kSoftmaxOfAll);
  EXPECT_EQ(c.weights, (std::vector<float>{0.25f, 0.25f}));
}

TEST(ChooseExperts, OfEqualScoresTheFirstWins) {
  EXPECT_EQ(Choose({1, 2, 2, 2}, 2, RouterKind::kSoftmaxOfChosen).experts,
            (std::vector<int>{1, 2}));
}

TEST(ChooseExperts, ScoresThatAreNoNumbersComeLast) {
  EXPECT_EQ(Choose({NAN, -5, NAN, 1}, 2, RouterKind::kSoftmaxOfChosen).experts,
            (std::vector<int>{1, 3}));
}

TEST(ChooseExperts, ABiasCountsForTheChoiceAlone) {
  const RouterRules rules{.bias = true, .scale = 2.5f};
  const Chosen c =
      Choose({0, 3, 1, 2}, 2, RouterKind::kSigmoid, rules, {5, 0, 5, 0});
  EXPECT_EQ(c.experts, (std::vector<int>{0, 2}));
  const double a = 0.5, b = 1 / (1 + std::exp(-1.0));
  EXPECT_FLOAT_EQ(c.weights[0], static_cast<float>(2.5 * a / (a + b)));
  EXPECT_FLOAT_EQ(c.weights[1], static_cast<float>(2.5 * b / (a + b)));
}

TEST(ChooseExperts, SigmoidsMayStayAsTheyAre) {
  const RouterRules rules{.normalize = false};
  const Chosen c = Choose({0, 3, 0}, 1, RouterKind::kSigmoid, rules);
  EXPECT_EQ(c.experts, (std::vector<int>{1}));
  EXPECT_FLOAT_EQ(c.weights[0], static_cast<float>(1 / (1 + std::exp(-3.0))));
}

// Three groups of two: the best expert is in the last, the best pair in the
// first.
TEST(ChooseExperts, OnlyTheBestGroupsAreLookedInto) {
  const std::vector<float> scores = {2, 2, 1, 0, 3, -9};
  RouterRules rules{.n_groups = 3, .n_groups_used = 1};
  EXPECT_EQ(Choose(scores, 2, RouterKind::kSigmoid, rules).experts,
            (std::vector<int>{4, 5}));
  rules.groups_by_two = true;
  EXPECT_EQ(Choose(scores, 2, RouterKind::kSigmoid, rules).experts,
            (std::vector<int>{0, 1}));
}

}  // namespace
}  // namespace hearth
