#include "text/unicode/byte_alphabet.h"

#include <array>
#include <cstdint>

#include "text/unicode/utf8.h"

namespace hearth {
namespace {

constexpr bool KeepsCodePoint(int b) {
  return (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) ||
         (b >= 0xAE && b <= 0xFF);
}

constexpr std::array<std::uint16_t, 256> MakeForward() {
  std::array<std::uint16_t, 256> table{};
  std::uint16_t next = 0x100;
  for (int b = 0; b < 256; ++b) {
    table[static_cast<std::size_t>(b)] =
        KeepsCodePoint(b) ? static_cast<std::uint16_t>(b) : next++;
  }
  return table;
}
constexpr auto kForward = MakeForward();

// -1: not in the alphabet.
constexpr std::array<std::int16_t, 0x144> MakeBackward() {
  std::array<std::int16_t, 0x144> table{};
  for (auto& entry : table) entry = -1;
  for (int b = 0; b < 256; ++b) {
    table[kForward[static_cast<std::size_t>(b)]] = static_cast<std::int16_t>(b);
  }
  return table;
}
constexpr auto kBackward = MakeBackward();

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

void AppendSpelled(std::string& out, std::string_view bytes) {
  for (const char c : bytes) {
    AppendUtf8(out, kForward[static_cast<unsigned char>(c)]);
  }
}

bool AppendUnspelled(std::string& out, std::string_view spelling) {
  const std::size_t before = out.size();
  out.resize(before + spelling.size());
  char* to = out.data() + before;
  std::size_t i = 0;
  while (i < spelling.size()) {
    auto code =
        static_cast<std::uint32_t>(static_cast<unsigned char>(spelling[i]));
    if (code < 0x80) {
      ++i;
    } else if (code >= 0xC2 && code <= 0xC5 && i + 1 < spelling.size()) {
      code = (code & 0x1F) << 6 |
             (static_cast<unsigned char>(spelling[i + 1]) & 0x3Fu);
      i += 2;
    } else {
      code = kBackward.size();
    }
    if (code >= kBackward.size() || kBackward[code] < 0) {
      out.resize(before);
      return false;
    }
    *to++ = static_cast<char>(kBackward[code]);
  }
  out.resize(static_cast<std::size_t>(to - out.data()));
  return true;
}

int ByteOfPiece(std::string_view piece) {
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece[5] != '>') {
    return -1;
  }
  const int high = HexDigit(piece[3]), low = HexDigit(piece[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

}  // namespace hearth
