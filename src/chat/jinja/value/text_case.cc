// Upper and lower case without a Unicode database: the bicameral scripts that
// chat text uses, by their regular ranges.
#include "chat/jinja/value/text.h"

namespace hearth::jinja {
namespace {

// Letters low..high pair with low + distance; with step 2, upper and lower
// case alternate and distance is 1.
struct CaseRange {
  char32_t upper_first;
  char32_t upper_last;
  char32_t distance;
  int step;
};

constexpr CaseRange kRanges[] = {
    {'A', 'Z', 32, 1},       {0xC0, 0xD6, 32, 1},    {0xD8, 0xDE, 32, 1},
    {0x100, 0x12E, 1, 2},    {0x132, 0x136, 1, 2},   {0x139, 0x147, 1, 2},
    {0x14A, 0x176, 1, 2},    {0x179, 0x17D, 1, 2},   {0x1CD, 0x1DB, 1, 2},
    {0x1DE, 0x1EE, 1, 2},    {0x1F8, 0x21E, 1, 2},   {0x222, 0x232, 1, 2},
    {0x388, 0x38A, 37, 1},   {0x391, 0x3A1, 32, 1},  {0x3A3, 0x3AB, 32, 1},
    {0x400, 0x40F, 80, 1},   {0x410, 0x42F, 32, 1},  {0x460, 0x480, 1, 2},
    {0x48A, 0x4BE, 1, 2},    {0x4C1, 0x4CD, 1, 2},   {0x4D0, 0x52E, 1, 2},
    {0x531, 0x556, 48, 1},   {0x1E00, 0x1E94, 1, 2}, {0x1EA0, 0x1EFE, 1, 2},
    {0xFF21, 0xFF3A, 32, 1}, {0x386, 0x386, 38, 1},  {0x38C, 0x38C, 64, 1},
    {0x38E, 0x38F, 63, 1},
};

constexpr struct {
  char32_t upper;
  char32_t lower;
} kSingles[] = {{0x178, 0xFF}, {0x4C0, 0x4CF}};

}  // namespace

char32_t LowerPoint(char32_t c) {
  for (const CaseRange& r : kRanges) {
    if (c >= r.upper_first && c <= r.upper_last &&
        (c - r.upper_first) % static_cast<char32_t>(r.step) == 0) {
      return c + r.distance;
    }
  }
  for (const auto& pair : kSingles) {
    if (c == pair.upper) return pair.lower;
  }
  return c;
}

char32_t UpperPoint(char32_t c) {
  if (c == 0x3C2) return 0x3A3;  // final sigma
  if (c == 0xB5) return 0x39C;   // micro sign
  for (const CaseRange& r : kRanges) {
    const char32_t first = r.upper_first + r.distance;
    const char32_t last = r.upper_last + r.distance;
    if (c >= first && c <= last &&
        (c - first) % static_cast<char32_t>(r.step) == 0) {
      return c - r.distance;
    }
  }
  for (const auto& pair : kSingles) {
    if (c == pair.lower) return pair.upper;
  }
  return c;
}

bool IsCasedPoint(char32_t c) {
  return UpperPoint(c) != c || LowerPoint(c) != c || c == 0xDF;
}

bool IsAlphaPoint(char32_t c) {
  const auto in = [c](char32_t low, char32_t high) {
    return c >= low && c <= high;
  };
  if (c < 0x80) return in('A', 'Z') || in('a', 'z');
  return c == 0xAA || c == 0xB5 || c == 0xBA || in(0xC0, 0xD6) ||
         in(0xD8, 0xF6) || in(0xF8, 0x2C1) || in(0x370, 0x373) ||
         in(0x376, 0x377) || in(0x37B, 0x37D) || in(0x386, 0x386) ||
         in(0x388, 0x481) || in(0x48A, 0x556) || in(0x561, 0x587) ||
         in(0x5D0, 0x5EA) || in(0x620, 0x64A) || in(0x671, 0x6D3) ||
         in(0x904, 0x939) || in(0xE01, 0xE30) || in(0x10A0, 0x10FF) ||
         in(0x1100, 0x11FF) || in(0x1E00, 0x1FFC) || in(0x3041, 0x3096) ||
         in(0x30A1, 0x30FA) || in(0x3105, 0x312F) || in(0x3131, 0x318E) ||
         in(0x3400, 0x4DBF) || in(0x4E00, 0x9FFF) || in(0xAC00, 0xD7A3) ||
         in(0xF900, 0xFAD9) || in(0xFF21, 0xFF3A) || in(0xFF41, 0xFF5A) ||
         in(0x20000, 0x323AF);
}

bool IsDigitPoint(char32_t c) {
  return (c >= '0' && c <= '9') || (c >= 0x660 && c <= 0x669) ||
         (c >= 0x6F0 && c <= 0x6F9) || (c >= 0x966 && c <= 0x96F) ||
         (c >= 0xFF10 && c <= 0xFF19);
}

std::string UpperText(std::string_view s) {
  std::string out;
  out.reserve(s.size());
  for (std::size_t pos = 0; pos < s.size();) {
    const char32_t c = DecodePoint(s, &pos);
    if (c == 0xDF) {
      out += "SS";
    } else {
      AppendPoint(UpperPoint(c), &out);
    }
  }
  return out;
}

std::string LowerText(std::string_view s) {
  std::string out;
  out.reserve(s.size());
  for (std::size_t pos = 0; pos < s.size();) {
    AppendPoint(LowerPoint(DecodePoint(s, &pos)), &out);
  }
  return out;
}

std::string CapitalizeText(std::string_view s) {
  std::string out;
  out.reserve(s.size());
  for (std::size_t pos = 0; pos < s.size();) {
    const bool first = pos == 0;
    const char32_t c = DecodePoint(s, &pos);
    AppendPoint(first ? UpperPoint(c) : LowerPoint(c), &out);
  }
  return out;
}

std::string TitleText(std::string_view s) {
  std::string out;
  out.reserve(s.size());
  bool in_word = false;
  for (std::size_t pos = 0; pos < s.size();) {
    const char32_t c = DecodePoint(s, &pos);
    AppendPoint(in_word ? LowerPoint(c) : UpperPoint(c), &out);
    in_word = IsCasedPoint(c);
  }
  return out;
}

}  // namespace hearth::jinja
