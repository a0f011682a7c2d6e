// What kind of character a code point is, and Unicode normal forms.
//
// Classes are bits, so that one lookup answers every question a split pattern
// asks. They follow the general categories of the Unicode version that utf8proc
// carries.
// Errors  none.
// Threads all functions may run at once.
#pragma once

#include <atomic>
#include <cstddef>
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

// The bits of every code point, filled in as its neighbourhood is asked for: a
// text uses a few of the 4,352 pages, and a start does not wait for the others.
class CharBitsTable {
 public:
  using Entry = std::atomic<std::uint16_t>;
  static constexpr char32_t kPageSize = 256, kCodes = 0x110000;

  static std::uint16_t Of(char32_t code) {
    if (code >= kCodes) return 0;
    const std::size_t page = code / kPageSize;
    if (!known_[page].load(std::memory_order_acquire)) Fill(page);
    return bits_[code].load(std::memory_order_relaxed);
  }
  // Of code points below U+0100.
  static const Entry* Latin();

 private:
  static void Fill(std::size_t page);

  // Two threads that fill one page write the same.
  static inline Entry bits_[kCodes];
  static inline std::atomic<bool> known_[kCodes / kPageSize];
};

// Any code point; unassigned ones and values past U+10FFFF have no bits.
inline std::uint16_t CharBits(char32_t code) { return CharBitsTable::Of(code); }

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
