#include "grammar/text/pattern.h"

#include <gtest/gtest.h>

#include "grammar/matching_testing.h"

namespace hearth::grammar {
namespace {

bool Takes(std::string_view pattern, std::string_view text) {
  const auto grammar = GrammarOf([&](Automaton& automaton) {
    const auto made = PatternInJson(automaton, pattern);
    EXPECT_TRUE(made.ok()) << made.error().message;
    return made.ok() ? *made : automaton.Empty();
  });
  return Matches(grammar, text);
}

Code RefusalOf(std::string_view pattern) {
  Automaton automaton;
  const auto made = PatternInJson(automaton, pattern);
  EXPECT_FALSE(made.ok()) << pattern;
  return made.ok() ? Code::kIo : made.error().code;
}

TEST(Pattern, WithoutAnchorsAnythingMayStandAround) {
  EXPECT_TRUE(Takes("b+", "abbc"));
  EXPECT_FALSE(Takes("^b+", "abbc"));
  EXPECT_FALSE(Takes("b+$", "abbc"));
  EXPECT_TRUE(Takes("^a|c$", "xc"));
  EXPECT_TRUE(Takes("^a|c$", "ax"));
  EXPECT_FALSE(Takes("^a|c$", "xax"));
}

TEST(Pattern, ClassesGroupsAndRepetitions) {
  EXPECT_TRUE(Takes("^(?:[A-F0-9]{2}:){2}\\d\\d$", "AF:09:42"));
  EXPECT_FALSE(Takes("^(?:[A-F0-9]{2}:){2}\\d\\d$", "AG:09:42"));
  EXPECT_TRUE(Takes("^(?<word>\\w+)\\s+\\S+?$", "ab_1  x"));
  EXPECT_TRUE(Takes("^[^\\d]+$", "abc"));
  EXPECT_FALSE(Takes("^[^\\d]+$", "ab1"));
  EXPECT_TRUE(Takes("^a{2,3}$", "aaa"));
  EXPECT_FALSE(Takes("^a{2,3}$", "aaaa"));
  EXPECT_TRUE(Takes("^\\$\\.\\u00e9$", "$.\xC3\xA9"));
}

TEST(Pattern, MatchesTheTextInsideAJsonString) {
  EXPECT_TRUE(Takes("^a\"b$", "a\\\"b"));
  EXPECT_FALSE(Takes("^a\"b$", "a\"b"));
  EXPECT_TRUE(Takes("^\\n$", "\\n"));
  EXPECT_FALSE(Takes("^\\n$", "\n"));
  EXPECT_TRUE(Takes("^[\\s\\S]$", "\\u0001"));
}

TEST(Pattern, WhatIsNotRegularIsRefused) {
  for (const char* pattern :
       {"^(?=a)b", "(a)\\1", "\\bword", "a$b", "a^b", "\\p{L}", "(?!x)"}) {
    EXPECT_EQ(RefusalOf(pattern), Code::kUnsupported) << pattern;
  }
  for (const char* pattern : {"(a", "a)", "[a", "*a", "[b-a]", "a{3,1}"}) {
    EXPECT_EQ(RefusalOf(pattern), Code::kInvalidArgument) << pattern;
  }
}

}  // namespace
}  // namespace hearth::grammar
