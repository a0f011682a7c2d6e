// What kind of character a code point is, and Unicode normal forms.
//
// Classes are bits, so that one lookup answers every question a split pattern
// asks. They follow the general categories of the Unicode version that utf8proc
// carries.
// Errors  none.
// Threads all functions may run at once.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hearth {

enum CharBit : std::uint16_t {
  kCharLetter = 1,     // L
  kCharNumber = 2,     // N: decimal digits, letters and others
  kCharSpace = 4,      // White_Space
  kCharNewline = 8,    // \r or \n only
  kCharUpperish = 16,  // Lu, Lt, Lm, Lo, M
  kCharLowerish = 32,  // Ll, Lm, Lo, M
  kCharPunct = 64,     // P
  kCharSymbol = 128,   // S
  kCharMark = 256,     // M
  kCharWord = 512,     // what \w means: alphabetic, M, Nd, Pc, joiners
};

// Bits of code points below U+10000; built at first use.
const std::uint16_t* BmpCharBits();
// Any code point; unassigned ones and values past U+10FFFF have no bits.
std::uint16_t CharBits(char32_t code);

enum class NormalForm : std::uint8_t { kNfc, kNfd, kNfkc, kNfkd };

// REQUIRES: valid UTF-8. Linear in the length, whatever the order of combining
// marks. Text below U+0300 is returned as it is for NFC.
std::string Normalize(std::string_view text, NormalForm form);
// True when `text` is certainly in NFC: a quick check that may say no wrongly.
bool IsSurelyNfc(std::string_view text);

// Each character in lower case (full mapping, no context).
std::string ToLower(std::string_view text);
// Without the characters of category M.
std::string StripMarks(std::string_view text);

}  // namespace hearth
