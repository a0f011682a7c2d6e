#include "cli/terminal/text.h"

#include <gtest/gtest.h>

namespace hearth::cli {
namespace {

TEST(CliText, NothingForeignSteersTheTerminal) {
  EXPECT_EQ(Escaped("a\x1b[31mb\r\n\tc\x7f"), "a\\x1b[31mb\\x0d\\n\\tc\\x7f");
  // C1 control characters, and marks that turn the direction of writing.
  EXPECT_EQ(Escaped("\xc2\x9b"
                    "2J \xe2\x80\xae!"),
            "\\u009b2J \\u202e!");
  EXPECT_EQ(Escaped(std::string("\0", 1)), "\\x00");
  EXPECT_EQ(Escaped("grün 🙂"), "grün 🙂");
  for (const std::string bad :
       {"\xff", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82"}) {
    const std::string shown = Escaped(bad);
    EXPECT_TRUE(shown.starts_with("\\x")) << shown;
    EXPECT_EQ(FirstInvalidUtf8("ab" + bad), 2u);
  }
  EXPECT_EQ(EscapedLines("a\n\tb\x1b"), "a\n\tb\\x1b");
}

TEST(CliText, TheNearestWordIsOfferedAndOnlyANearOne) {
  const std::vector<std::string> known = {"sample", "chat", "tokenize",
                                          "detokenize", "quantize"};
  EXPECT_EQ(Nearest("smaple", known), "sample");
  EXPECT_EQ(Nearest("chta", known), "chat");
  EXPECT_EQ(Nearest("quant", known), "quantize");
  EXPECT_EQ(Nearest("frobnicate", known), "");
  EXPECT_EQ(Nearest("x", known), "");
  EXPECT_EQ(DidYouMean("tokenise", known), "; did you mean tokenize?");
  EXPECT_EQ(DidYouMean("zzz", known), "");
}

}  // namespace
}  // namespace hearth::cli
