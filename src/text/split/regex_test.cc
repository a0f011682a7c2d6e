#include "text/split/regex.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

std::string Found(std::string_view pattern, std::string_view text) {
  const auto regex = Regex::Compile(pattern, "test");
  if (!regex.ok()) return regex.error().message;
  RegexScratch scratch;
  const auto match = regex->Find(text, 0, scratch);
  if (!match.ok()) return match.error().message;
  return std::string(text.substr(match->start, match->end - match->start));
}

TEST(Regex, ReadsOnigurumaClasses) {
  EXPECT_EQ(Found("\\s+", "a\xC2\x85\xE3\x80\x80 b"),
            "\xC2\x85\xE3\x80\x80 ");  // U+0085 and U+3000 are white space
  EXPECT_EQ(Found("\\h+", "xyz12afq"), "12af");
  EXPECT_EQ(Found("[^\\s\\p{L}]+", "ab .,! c"), ".,!");
  EXPECT_EQ(Found("b$", "ab\nc"), "b");  // line anchors, always
}

TEST(Regex, EmptyMatchesAreStepsOver) {
  EXPECT_EQ(Found("x*", "aaxxb"), "xx");
  EXPECT_EQ(Found("(?=a)", "aaa"), "");
}

TEST(Regex, ConstructsOfAnotherMeaningAreRefusedByName) {
  for (const char* pattern : {"[a&&b]", "[a[bc]]", "(?m)a", "a{1,2}+", "\\R",
                              "(*UCP)a", "[\\W]", "(?<name>a)", "\\"}) {
    const auto regex = Regex::Compile(pattern, "file.json");
    ASSERT_FALSE(regex.ok()) << pattern;
    EXPECT_EQ(regex.error().code, Code::kUnsupported);
    EXPECT_NE(regex.error().message.find(pattern), std::string::npos);
    EXPECT_EQ(regex.error().message.find("file.json"), 0u);
  }
}

TEST(Regex, BrokenPatternIsAnErrorAndNotACrash) {
  EXPECT_FALSE(Regex::Compile("(", "t").ok());
  EXPECT_FALSE(Regex::Compile("[z-a]", "t").ok());
  EXPECT_FALSE(Regex::Compile("a\xFF", "t").ok());
  EXPECT_FALSE(Regex::Compile(std::string(20000, 'a'), "t").ok());
}

TEST(Regex, ExponentialPatternEndsWithAnError) {
  const auto regex = Regex::Compile("(a+)+b", "t");
  ASSERT_TRUE(regex.ok());
  RegexScratch scratch;
  std::string text(40, 'a');
  text += "c";
  const auto match = regex->Find(text, 0, scratch);
  // Either an engine that sees there is no b, or a step limit.
  if (!match.ok()) {
    EXPECT_EQ(match.error().code, Code::kResourceFull);
  }
  const auto open = Regex::Compile("(?:a|a)*(?:a|a)*(?:a|a)*c", "t");
  ASSERT_TRUE(open.ok());
  text.assign(3000, 'a');
  text += "bc";
  const auto slow = open->Find(text, 0, scratch);
  EXPECT_TRUE(slow.ok() || slow.error().code == Code::kResourceFull);
}

}  // namespace
}  // namespace hearth
