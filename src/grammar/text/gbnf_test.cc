#include "grammar/text/gbnf.h"

#include <gtest/gtest.h>

#include "grammar/matching_testing.h"

namespace hearth::grammar {
namespace {

bool Takes(std::string_view grammar, std::string_view text) {
  const auto made = GrammarFromGbnf(grammar);
  EXPECT_TRUE(made.ok()) << made.error().message;
  return made.ok() && Matches(*made, text);
}

std::string Refusal(std::string_view grammar) {
  const auto made = GrammarFromGbnf(grammar);
  return made.ok() ? "accepted" : made.error().message;
}

TEST(Gbnf, LiteralsChoicesAndRules) {
  constexpr std::string_view kGrammar =
      "root ::= greeting \", \" name \"!\"  # a comment\n"
      "greeting ::= \"Hello\" |\n  \"Bye\"\n"
      "name ::= [A-Z] [a-z]*\n";
  EXPECT_TRUE(Takes(kGrammar, "Hello, Ada!"));
  EXPECT_TRUE(Takes(kGrammar, "Bye, X!"));
  EXPECT_FALSE(Takes(kGrammar, "Hello, ada!"));
  EXPECT_FALSE(Takes(kGrammar, "Hello, Ada"));
  EXPECT_FALSE(Takes(kGrammar, "Hello, Ada!!"));
}

TEST(Gbnf, Repetitions) {
  constexpr std::string_view kGrammar =
      R"(root ::= "a"* "b"+ "c"? "d"{2} "e"{1,} "f"{0,2} "g"{,1})";
  EXPECT_TRUE(Takes(kGrammar, "bdde"));
  EXPECT_TRUE(Takes(kGrammar, "aabbbcddeeeffg"));
  EXPECT_FALSE(Takes(kGrammar, "adde"));     // no b
  EXPECT_FALSE(Takes(kGrammar, "bccdde"));   // two c
  EXPECT_FALSE(Takes(kGrammar, "bde"));      // one d
  EXPECT_FALSE(Takes(kGrammar, "bddefff"));  // three f
  EXPECT_FALSE(Takes(kGrammar, "bddegg"));   // two g
}

TEST(Gbnf, ClassesNegationAndEscapes) {
  EXPECT_TRUE(Takes(R"(root ::= [^a-z\n]+)", "ABC 1\xC3\xA9"));
  EXPECT_FALSE(Takes(R"(root ::= [^a-z\n]+)", "ABc"));
  EXPECT_FALSE(Takes(R"(root ::= [^a-z\n]+)", "A\n"));
  EXPECT_TRUE(Takes(R"(root ::= "\x41\u00e9\U0001F600\"\\")",
                    "A\xC3\xA9\xF0\x9F\x98\x80\"\\"));
  EXPECT_TRUE(Takes(R"(root ::= [\]\-x-]+)", "]-x"));
  EXPECT_TRUE(Takes("root ::= . .", "\xE2\x82\xAC\n"));
  // Half a character is not one.
  EXPECT_FALSE(Takes("root ::= .", "\xE2\x82"));
}

TEST(Gbnf, RulesMayCallThemselvesBehindSomething) {
  constexpr std::string_view kGrammar =
      "root ::= pair\npair ::= \"(\" pair? \")\" pair?\n";
  EXPECT_TRUE(Takes(kGrammar, "(()())()"));
  EXPECT_FALSE(Takes(kGrammar, "(()"));
  // Right recursion of any length keeps a stack of one.
  std::string text(20000, 'x');
  EXPECT_TRUE(Takes("root ::= \"x\" root | \"\"", text));
}

TEST(Gbnf, AnAmbiguousGrammarIsReadOnce) {
  std::string text(300, 'x');
  EXPECT_TRUE(Takes("root ::= (\"x\" | \"xx\" | \"x\"*)*", text));
}

TEST(Gbnf, WhatIsNoGrammarIsRefusedWithItsPlace) {
  EXPECT_EQ(Refusal("root ::= \"a"),
            "the grammar, line 1, column 12: the quoted text has no end");
  EXPECT_EQ(Refusal("root ::= \"a\"\n\nb ::= c"),
            "the grammar uses the rule c and does not define it");
  EXPECT_EQ(Refusal("start ::= \"a\""),
            "the grammar has no rule named root, where an answer begins");
  EXPECT_EQ(Refusal("root ::= [b-a]"),
            "the grammar, line 1, column 14: a range runs backwards");
  EXPECT_EQ(Refusal("root ::= \"a\"\nroot ::= \"b\""),
            "the grammar, line 2, column 10: the rule root is defined twice");
  EXPECT_NE(Refusal("root ::= (\"a\"").find("expected )"), std::string::npos);
  EXPECT_NE(Refusal("root ::= \"\\q\"").find("unknown escape"),
            std::string::npos);
  EXPECT_NE(Refusal("root ::= \"a\"{3,1}").find("wrong order"),
            std::string::npos);
  EXPECT_NE(Refusal("root ::= <[10]>").find("not supported"),
            std::string::npos);
  EXPECT_NE(Refusal("root ::= " + std::string(500, '(')).find("nest too deep"),
            std::string::npos);
}

TEST(Gbnf, S21_LeftRecursionIsRefusedByTheRulesName) {
  for (const char* grammar :
       {"root ::= root \"a\" | \"b\"", "root ::= e\ne ::= \"x\"? e \"a\"",
        "root ::= a\na ::= b\nb ::= \"\" a"}) {
    EXPECT_NE(Refusal(grammar).find("may call itself before"),
              std::string::npos)
        << grammar;
  }
}

}  // namespace
}  // namespace hearth::grammar
