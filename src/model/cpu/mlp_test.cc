#include "model/cpu/mlp.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace hearth {
namespace {

struct Chosen {
  std::vector<int> experts;
  std::vector<float> weights;
};

Chosen Choose(const std::vector<float>& scores, int n_used, RouterKind kind) {
  const auto n = static_cast<std::size_t>(n_used);
  Chosen out{std::vector<int>(n), std::vector<float>(n)};
  ChooseExperts(scores.data(), static_cast<int>(scores.size()), n_used, kind,
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

}  // namespace
}  // namespace hearth
