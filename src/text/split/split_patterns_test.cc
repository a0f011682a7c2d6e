#include "text/split/split_patterns.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "text/split/regex.h"
#include "text/unicode/unicode.h"
#include "text/unicode/utf8.h"

namespace hearth {
namespace {

using Pieces = std::vector<std::string>;

Pieces ByHand(SplitPattern pattern, std::string_view text) {
  Pieces pieces;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t end = NextPiece(pattern, text, i);
    pieces.emplace_back(text.substr(i, end - i));
    if (end <= i) return pieces;
    i = end;
  }
  return pieces;
}

Pieces ByRegex(const Regex& regex, std::string_view text) {
  RegexScratch scratch;
  Pieces pieces;
  for (std::size_t i = 0; i < text.size();) {
    const auto match = regex.Find(text, i, scratch);
    if (!match.ok() || !match->found) {
      pieces.emplace_back(text.substr(i));
      break;
    }
    if (match->start > i) pieces.emplace_back(text.substr(i, match->start - i));
    pieces.emplace_back(text.substr(match->start, match->end - match->start));
    i = match->end;
  }
  return pieces;
}

// Code points whose classes both Unicode tables agree on: the newest ones may
// be assigned in one and not yet in the other.
bool TablesAgree(char32_t code) {
  static const Regex letter = Regex::Compile("\\p{L}", "t").value();
  static const Regex number = Regex::Compile("\\p{N}", "t").value();
  static const Regex upperish =
      Regex::Compile("[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]", "t").value();
  static const Regex lowerish =
      Regex::Compile("[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]", "t").value();
  RegexScratch scratch;
  std::string text;
  AppendUtf8(text, code);
  const auto same = [&](const Regex& regex, unsigned bit) {
    return regex.Find(text, 0, scratch)->found == ((CharBits(code) & bit) != 0);
  };
  return same(letter, kCharLetter) && same(number, kCharNumber) &&
         same(upperish, kCharUpperish) && same(lowerish, kCharLowerish);
}

// Characters picked so that every alternative of the patterns comes up often.
char32_t AnyChar(std::mt19937& rng) {
  constexpr char32_t kTelling[] = {
      U' ',   U' ',   U' ',    U'\n',   U'\r',  U'\t',  U'\'',   U's',
      U'S',   U't',   U'r',    U'e',    U'v',   U'm',   U'l',    U'L',
      U'd',   U'a',   U'Z',    U'0',    U'7',   U'/',   U'.',    U'!',
      0x17F,  0x1C5,  0x2B0,   0x301,   0x5D0,  0x430,  0x410,   0xBD,
      0x2163, 0x85,   0xA0,    0x3000,  0x2028, 0x4E2D, 0x1F999, 0xE000,
      0xFFFD, 0x200D, 0x1D400, 0x10400, 0x0E33, 0x093E};
  if (rng() % 8 != 0) {
    return kTelling[rng() % std::size(kTelling)];
  }
  while (true) {
    const auto code = static_cast<char32_t>(rng() % 0x20000);
    if ((code < 0xD800 || code >= 0xE000) && TablesAgree(code)) return code;
  }
}

class ByHandEqualsRegex : public testing::TestWithParam<SplitPattern> {};

TEST_P(ByHandEqualsRegex, OnRandomText) {
  const SplitPattern pattern = GetParam();
  const auto regex = Regex::Compile(PatternText(pattern), "test");
  ASSERT_TRUE(regex.ok()) << regex.error().message;
  std::mt19937 rng(static_cast<unsigned>(pattern));
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    const auto n = 1 + rng() % 14;
    for (std::size_t i = 0; i < n; ++i) AppendUtf8(text, AnyChar(rng));
    ASSERT_EQ(ByHand(pattern, text), ByRegex(*regex, text)) << text;
  }
}

TEST_P(ByHandEqualsRegex, ItsOwnTextIsRecognised) {
  EXPECT_EQ(RecognizePattern(PatternText(GetParam())), GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    Patterns, ByHandEqualsRegex,
    testing::Values(SplitPattern::kGpt2, SplitPattern::kCl100k,
                    SplitPattern::kCl100kDigit, SplitPattern::kO200k,
                    SplitPattern::kTekken, SplitPattern::kQwen35));

TEST(SplitPatterns, WordsKeepTheSpaceBeforeThem) {
  EXPECT_EQ(ByHand(SplitPattern::kGpt2, "It's  12 o'clock"),
            (Pieces{"It", "'s", " ", " 12", " o", "'", "clock"}));
  EXPECT_EQ(ByHand(SplitPattern::kCl100k, "IT'S 12345\n\n x"),
            (Pieces{"IT", "'S", " ", "123", "45", "\n\n", " x"}));
  EXPECT_EQ(ByHand(SplitPattern::kO200k, "getHTTPResponse's a/b"),
            (Pieces{"get", "HTTPResponse's", " a", "/b"}));
}

TEST(SplitPatterns, UnknownPatternIsNotRecognised) {
  EXPECT_FALSE(RecognizePattern("\\p{L}+").has_value());
}

}  // namespace
}  // namespace hearth
