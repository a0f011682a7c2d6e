// UTF-8: checking, decoding, encoding, and a stream that hands out only whole
// characters.
//
// Invalid input follows the "maximal subpart" practice of the Unicode standard
// (section 3.9): every longest start of a character that cannot be finished
// becomes one U+FFFD, every other wrong byte one more. Python's
// errors="replace" gives the same.
//
// Errors  none: every byte sequence has an answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hearth {

inline constexpr char32_t kReplacementChar = 0xFFFD;
inline constexpr std::string_view kReplacementUtf8 = "\xEF\xBF\xBD";

// One decoded character. `length` is in bytes and at least 1.
struct Utf8Char {
  char32_t code = kReplacementChar;
  std::uint8_t length = 1;
  bool valid = false;
};

// The character at text[position]. When it is not valid, `length` counts the
// bytes of the maximal subpart. REQUIRES: position < text.size().
Utf8Char DecodeUtf8(std::string_view text, std::size_t position);

// The same for text known to be valid: no checks, no branches on errors.
inline char32_t DecodeValidUtf8(const char* p, std::size_t* length) {
  const auto b0 = static_cast<unsigned char>(p[0]);
  const auto low6 = [p](int i) {
    return static_cast<char32_t>(static_cast<unsigned char>(p[i]) & 0x3F);
  };
  if (b0 < 0x80) {
    *length = 1;
    return b0;
  }
  if (b0 < 0xE0) {
    *length = 2;
    return static_cast<char32_t>(b0 & 0x1F) << 6 | low6(1);
  }
  if (b0 < 0xF0) {
    *length = 3;
    return static_cast<char32_t>(b0 & 0x0F) << 12 | low6(1) << 6 | low6(2);
  }
  *length = 4;
  return static_cast<char32_t>(b0 & 0x07) << 18 | low6(1) << 12 | low6(2) << 6 |
         low6(3);
}

// Bytes of the character that starts with `lead`, for valid text.
inline std::size_t Utf8Length(char lead) {
  const auto b = static_cast<unsigned char>(lead);
  return b < 0x80 ? 1 : b < 0xE0 ? 2 : b < 0xF0 ? 3 : 4;
}

// Appends `code`; a surrogate or a value above U+10FFFF appends U+FFFD.
void AppendUtf8(std::string& out, char32_t code);

bool IsValidUtf8(std::string_view text);

// `text` with every invalid part replaced by U+FFFD.
std::string ReplaceInvalidUtf8(std::string_view text);

// Bytes in, whole valid characters out. Bytes that may still become a character
// wait; bytes that cannot become one turn into U+FFFD at once.
// Not thread-safe.
class Utf8Stream {
 public:
  // What can be shown now.
  std::string Push(std::string_view bytes);
  // The end of the stream: an unfinished character becomes U+FFFD.
  std::string Flush();
  // How many bytes wait (0..3).
  std::size_t pending() const { return pending_.size(); }

 private:
  std::string pending_;
};

}  // namespace hearth
