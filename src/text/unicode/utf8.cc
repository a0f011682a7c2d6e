#include "text/unicode/utf8.h"

#include <cstring>

namespace hearth {
namespace {

// Smallest and largest second byte after `lead`: keeps out overlong forms,
// surrogates and values above U+10FFFF.
struct SecondByte {
  unsigned char low, high;
};

SecondByte SecondByteAfter(unsigned char lead) {
  switch (lead) {
    case 0xE0:
      return {0xA0, 0xBF};
    case 0xED:
      return {0x80, 0x9F};
    case 0xF0:
      return {0x90, 0xBF};
    case 0xF4:
      return {0x80, 0x8F};
    default:
      return {0x80, 0xBF};
  }
}

std::size_t LengthOf(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead < 0xC2) return 0;
  if (lead < 0xE0) return 2;
  if (lead < 0xF0) return 3;
  return lead < 0xF5 ? 4 : 0;
}

// Bytes at the end of `text` that start a character without finishing it.
std::size_t UnfinishedTail(std::string_view text) {
  const std::size_t reach = text.size() < 3 ? text.size() : 3;
  for (std::size_t back = 1; back <= reach; ++back) {
    const std::size_t at = text.size() - back;
    const auto b = static_cast<unsigned char>(text[at]);
    if (b >= 0x80 && b < 0xC0) continue;
    if (LengthOf(b) <= back) return 0;
    const Utf8Char c = DecodeUtf8(text, at);
    return !c.valid && c.length == back ? back : 0;
  }
  return 0;
}

std::size_t AsciiRun(std::string_view text, std::size_t i) {
  while (i + 8 <= text.size()) {
    std::uint64_t word;
    std::memcpy(&word, text.data() + i, 8);
    if ((word & 0x8080808080808080ull) != 0) break;
    i += 8;
  }
  while (i < text.size() && static_cast<unsigned char>(text[i]) < 0x80) ++i;
  return i;
}

}  // namespace

Utf8Char DecodeUtf8(std::string_view text, std::size_t position) {
  const auto byte = [&](std::size_t i) {
    return static_cast<unsigned char>(text[position + i]);
  };
  const unsigned char lead = byte(0);
  const std::size_t length = LengthOf(lead);
  if (length == 1) return {lead, 1, true};
  if (length == 0) return {};
  const SecondByte second = SecondByteAfter(lead);
  char32_t code = lead & (0xFFu >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    const bool there = position + i < text.size();
    const unsigned char low = i == 1 ? second.low : 0x80;
    const unsigned char high = i == 1 ? second.high : 0xBF;
    if (!there || byte(i) < low || byte(i) > high) {
      return {kReplacementChar, static_cast<std::uint8_t>(i), false};
    }
    code = code << 6 | (byte(i) & 0x3Fu);
  }
  return {code, static_cast<std::uint8_t>(length), true};
}

void AppendUtf8(std::string& out, char32_t code) {
  const auto put = [&out](char32_t byte) {
    out.push_back(static_cast<char>(static_cast<unsigned char>(byte)));
  };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6);
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    if (code >= 0xD800 && code < 0xE000) code = kReplacementChar;
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  } else if (code < 0x110000) {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    out += kReplacementUtf8;
  }
}

bool IsValidUtf8(std::string_view text) {
  std::size_t i = 0;
  while (true) {
    i = AsciiRun(text, i);
    if (i == text.size()) return true;
    const Utf8Char c = DecodeUtf8(text, i);
    if (!c.valid) return false;
    i += c.length;
  }
}

std::string ReplaceInvalidUtf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  std::size_t i = 0;
  while (i < text.size()) {
    const std::size_t run = AsciiRun(text, i);
    out += text.substr(i, run - i);
    i = run;
    if (i == text.size()) break;
    const Utf8Char c = DecodeUtf8(text, i);
    out += c.valid ? text.substr(i, c.length) : kReplacementUtf8;
    i += c.length;
  }
  return out;
}

std::string Utf8Stream::Push(std::string_view bytes) {
  pending_ += bytes;
  const std::size_t keep = UnfinishedTail(pending_);
  const std::size_t ready = pending_.size() - keep;
  std::string out =
      ReplaceInvalidUtf8(std::string_view(pending_).substr(0, ready));
  pending_.erase(0, ready);
  return out;
}

std::string Utf8Stream::Flush() {
  std::string out = ReplaceInvalidUtf8(pending_);
  pending_.clear();
  return out;
}

}  // namespace hearth
