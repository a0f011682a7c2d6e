#include "cli/options/numbers.h"

#include <gtest/gtest.h>

#include <limits>

namespace hearth::cli {
namespace {

TEST(CliNumbers, IntegersAreReadWholeAndWithinTheirLimits) {
  EXPECT_EQ(*ParseInteger("0", 0, 10), 0);
  EXPECT_EQ(*ParseInteger("-1", -1, 10), -1);
  for (const std::string text : {"", " 1", "1 ", "1x", "0x10", "1.5", "-2",
                                 "11", "99999999999999999999999"}) {
    const auto refused = ParseInteger(text, -1, 10);
    ASSERT_FALSE(refused.ok()) << text;
    EXPECT_NE(refused.error().message.find("from -1 to 10"), std::string::npos);
  }
}

TEST(CliNumbers, SizesKnowTheirUnitsAndNoSign) {
  EXPECT_EQ(*ParseSize("0"), 0u);
  EXPECT_EQ(*ParseSize("300K"), 300'000u);
  EXPECT_EQ(*ParseSize("300kB"), 300'000u);
  EXPECT_EQ(*ParseSize("64Ki"), 65'536u);
  EXPECT_EQ(*ParseSize("1.5G"), 1'500'000'000u);
  EXPECT_EQ(*ParseSize("20 GB"), 20'000'000'000u);
  EXPECT_EQ(*ParseSize("18446744073709551615"),
            std::numeric_limits<std::uint64_t>::max());
  for (const std::string text :
       {"", "-1", "K", "1X", "1.5", "1KK", "nan", "1e3", "18446744073709551616",
        "99999999999T", "1 K x"}) {
    EXPECT_FALSE(ParseSize(text).ok()) << text;
  }
}

TEST(CliNumbers, ASeedOfMinusOneIsANewOneAndOverflowIsRefused) {
  EXPECT_FALSE(ParseSeed("-1")->has_value());
  EXPECT_EQ(**ParseSeed("18446744073709551615"),
            std::numeric_limits<std::uint64_t>::max());
  for (const std::string text : {"-2", "99999999999999999999999", "", "1.0"}) {
    EXPECT_FALSE(ParseSeed(text).ok()) << text;
  }
}

TEST(CliNumbers, NumbersAreFiniteAndWithinTheirLimits) {
  EXPECT_EQ(*ParseNumber("0.95", 0, 1), 0.95);
  for (const std::string text : {"nan", "inf", "-0.1", "1.1", "x", ""}) {
    EXPECT_FALSE(ParseNumber(text, 0, 1).ok()) << text;
  }
}

}  // namespace
}  // namespace hearth::cli
