#include "grammar/schema/decimal_range.h"

#include <gtest/gtest.h>

#include <random>

#include "grammar/matching_testing.h"

namespace hearth::grammar {
namespace {

std::optional<Bound> BoundOf(const std::string& text, bool exclusive) {
  if (text.empty()) return std::nullopt;
  return Bound{Decimal::Parse(text).value(), exclusive};
}

TEST(DecimalRange, IntegersAreExactlyThoseBetweenTheBounds) {
  std::mt19937 random(1);
  std::uniform_int_distribution<int> draw(-1200, 1200);
  for (int round = 0; round < 60; ++round) {
    const int a = draw(random);
    const int b = draw(random);
    const bool exclusive = round % 3 == 0;
    const bool open_low = round % 5 == 1;
    const bool open_high = round % 5 == 2;
    const auto low =
        BoundOf(open_low ? "" : std::to_string(std::min(a, b)), exclusive);
    const auto high =
        BoundOf(open_high ? "" : std::to_string(std::max(a, b)), exclusive);
    Automaton probe;
    if (!NumberInRange(probe, low, high, true).ok()) {
      EXPECT_TRUE(exclusive && std::abs(a - b) < 2) << a << " " << b;
      continue;
    }
    const auto grammar = GrammarOf([&](Automaton& automaton) {
      return NumberInRange(automaton, low, high, true).value();
    });
    for (int x = -1300; x <= 1300; ++x) {
      const bool above =
          open_low || x > std::min(a, b) || (!exclusive && x == std::min(a, b));
      const bool below = open_high || x < std::max(a, b) ||
                         (!exclusive && x == std::max(a, b));
      ASSERT_EQ(Matches(grammar, std::to_string(x)), above && below)
          << x << " in " << a << ", " << b;
    }
    EXPECT_FALSE(Matches(grammar, "007"));
    EXPECT_FALSE(Matches(grammar, "-0"));
    EXPECT_FALSE(Matches(grammar, "1.0"));
  }
}

TEST(DecimalRange, FractionsAreComparedDigitByDigit) {
  const auto grammar = GrammarOf([&](Automaton& automaton) {
    return NumberInRange(automaton, BoundOf("-2.5", true),
                         BoundOf("1e-1", false), false)
        .value();
  });
  for (const char* in : {"-2.49", "-2", "-0.001", "0", "0.0", "0.1", "0.10",
                         "0.09999", "-1.75"}) {
    EXPECT_TRUE(Matches(grammar, in)) << in;
  }
  for (const char* out : {"-2.5", "-2.50", "-2.51", "-3", "0.11", "0.101", "1",
                          "-10", "0.", "."}) {
    EXPECT_FALSE(Matches(grammar, out)) << out;
  }
}

TEST(DecimalRange, NoNumberBetweenIsSaid) {
  Automaton automaton;
  EXPECT_FALSE(
      NumberInRange(automaton, BoundOf("3", false), BoundOf("2", false), true)
          .ok());
  EXPECT_FALSE(NumberInRange(automaton, BoundOf("0.2", false),
                             BoundOf("0.8", false), true)
                   .ok());
}

}  // namespace
}  // namespace hearth::grammar
