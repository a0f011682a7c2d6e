#include "text/unicode/unicode.h"

#include <gtest/gtest.h>
#include <utf8proc.h>

#include <chrono>
#include <cstdlib>
#include <random>

#include "text/unicode/utf8.h"

namespace hearth {
namespace {

std::string Reference(std::string_view text) {
  utf8proc_uint8_t* out = nullptr;
  utf8proc_map(
      reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
      static_cast<utf8proc_ssize_t>(text.size()), &out,
      static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  std::string copy(reinterpret_cast<char*>(out));
  std::free(out);
  return copy;
}

TEST(Unicode, ClassesOfTellingCharacters) {
  EXPECT_EQ(CharBits(U'a'), kCharLetter | kCharLowerish | kCharWord);
  EXPECT_EQ(CharBits(U'\n'), kCharSpace | kCharNewline);
  EXPECT_EQ(CharBits(0x00BD), kCharNumber);     // one half
  EXPECT_EQ(CharBits(0x180E) & kCharSpace, 0);  // not white space
  EXPECT_NE(CharBits(0x0301) & kCharMark, 0);
  EXPECT_NE(CharBits(0x1D400) & kCharUpperish, 0);
  EXPECT_EQ(CharBits(0x110000), 0);
}

TEST(Unicode, NfcEqualsTheLibrarysOwn) {
  std::mt19937 rng(3);
  constexpr char32_t kParts[] = {
      U'e',   U'a',   0x301,  0x323,  0x327,  0x1100,  0x1161, 0x11A8, 0xAC00,
      0x1E9B, 0x212B, 0x3099, 0x304B, 0x0F73, 0x1D15E, U' ',   0x4E2D, 0xE9};
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    for (auto i = 1 + rng() % 8; i > 0; --i) {
      AppendUtf8(text, kParts[rng() % std::size(kParts)]);
    }
    ASSERT_EQ(Normalize(text, NormalForm::kNfc), Reference(text));
    if (IsSurelyNfc(text)) {
      ASSERT_EQ(Reference(text), text);
    }
  }
}

TEST(Unicode, MarksInTheWorstOrderTakeLinearTime) {
  std::string text = "a";
  for (int i = 0; i < 300000; ++i) text += "\xCC\x81";  // above
  for (int i = 0; i < 300000; ++i) text += "\xCC\xA3";  // below: goes first
  const auto start = std::chrono::steady_clock::now();
  const std::string out = Normalize(text, NormalForm::kNfc);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
  EXPECT_EQ(out.substr(0, 3), "\xE1\xBA\xA1");  // a with dot below
}

TEST(Unicode, LowerCaseIsByCharacter) {
  EXPECT_EQ(ToLower("\xC3\x84"
                    "bC\xCE\xA3"),
            "\xC3\xA4"
            "bc\xCF\x83");
  EXPECT_EQ(ToLower("\xC4\xB0"), "i\xCC\x87");
}

TEST(Unicode, StripMarksLeavesTheBase) {
  EXPECT_EQ(StripMarks("e\xCC\x81x"), "ex");
}

}  // namespace
}  // namespace hearth
