#include "text/unicode/utf8.h"

#include <gtest/gtest.h>

#include <random>

namespace hearth {
namespace {

TEST(Utf8, MaximalSubpartsBecomeOneReplacementEach) {
  const std::string r(kReplacementUtf8);
  EXPECT_EQ(ReplaceInvalidUtf8("a\x80z"), "a" + r + "z");
  EXPECT_EQ(ReplaceInvalidUtf8("\xF0\x9F\xA6"), r);          // cut short
  EXPECT_EQ(ReplaceInvalidUtf8("\xF0\x9F\xA6X"), r + "X");   // interrupted
  EXPECT_EQ(ReplaceInvalidUtf8("\xC0\xAF"), r + r);          // overlong
  EXPECT_EQ(ReplaceInvalidUtf8("\xED\xA0\x80"), r + r + r);  // surrogate
  EXPECT_EQ(ReplaceInvalidUtf8("\xF4\x90\x80\x80"), r + r + r + r);
  EXPECT_EQ(ReplaceInvalidUtf8("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF"),
            r + r + r + r);
}

TEST(Utf8, EveryCodePointSurvivesARoundTrip) {
  for (char32_t code = 0; code < 0x110000; ++code) {
    if (code >= 0xD800 && code < 0xE000) continue;
    std::string text;
    AppendUtf8(text, code);
    ASSERT_TRUE(IsValidUtf8(text)) << int(code);
    const Utf8Char c = DecodeUtf8(text, 0);
    ASSERT_TRUE(c.valid && c.code == code && c.length == text.size())
        << int(code);
    std::size_t length;
    ASSERT_TRUE(DecodeValidUtf8(text.data(), &length) == code);
    ASSERT_EQ(length, text.size());
    ASSERT_EQ(Utf8Length(text[0]), text.size());
  }
}

TEST(Utf8Stream, HoldsAHalfCharacterBack) {
  Utf8Stream stream;
  EXPECT_EQ(stream.Push("ab\xF0\x9F"), "ab");
  EXPECT_EQ(stream.pending(), 2u);
  EXPECT_EQ(stream.Push("\xA6"), "");
  EXPECT_EQ(stream.Push("\x99!"), "\xF0\x9F\xA6\x99!");
  EXPECT_EQ(stream.Flush(), "");
}

TEST(Utf8Stream, WhatCannotBecomeACharacterComesOutAtOnce) {
  Utf8Stream stream;
  EXPECT_EQ(stream.Push("\xF0\x9F"), "");
  EXPECT_EQ(stream.Push("x"), std::string(kReplacementUtf8) + "x");
  EXPECT_EQ(stream.Push("\xE2\x82"), "");
  EXPECT_EQ(stream.Flush(), kReplacementUtf8);
}

TEST(Utf8Stream, PiecesGiveWhatTheWholeGives) {
  std::mt19937 rng(7);
  for (int round = 0; round < 3000; ++round) {
    std::string bytes;
    for (int i = 0; i < 12; ++i) {
      // Lead and trail bytes mostly, so that sequences nearly work.
      const auto pick = rng() % 4;
      bytes.push_back(static_cast<char>(pick == 0   ? rng() % 128
                                        : pick == 1 ? 0xC0 + rng() % 64
                                                    : 0x80 + rng() % 64));
    }
    Utf8Stream stream;
    std::string out;
    for (std::size_t i = 0; i < bytes.size();) {
      const std::size_t n =
          std::min<std::size_t>(1 + rng() % 4, bytes.size() - i);
      out += stream.Push(std::string_view(bytes).substr(i, n));
      EXPECT_TRUE(IsValidUtf8(out));
      i += n;
    }
    out += stream.Flush();
    ASSERT_EQ(out, ReplaceInvalidUtf8(bytes));
  }
}

}  // namespace
}  // namespace hearth
