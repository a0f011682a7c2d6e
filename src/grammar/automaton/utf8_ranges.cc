#include "grammar/automaton/utf8_ranges.h"

#include <algorithm>
#include <string>

#include "text/unicode/utf8.h"

namespace hearth::grammar {
namespace {

constexpr char32_t kLastCode = 0x10FFFF;

// REQUIRES: both ends have the same length and no surrogate lies between.
void Split(char32_t first, char32_t last, std::vector<Utf8Range>& out) {
  std::string a, b;
  AppendUtf8(a, first);
  AppendUtf8(b, last);
  const int length = static_cast<int>(a.size());
  // The bytes behind the first that differs must run through all 64 values,
  // else the range is cut where they begin or end.
  for (int tail = 1; tail < length; ++tail) {
    const char32_t mask = (char32_t{1} << (6 * tail)) - 1;
    if ((first & ~mask) == (last & ~mask)) break;
    if ((first & mask) != 0) {
      Split(first, first | mask, out);
      Split((first | mask) + 1, last, out);
      return;
    }
    if ((last & mask) != mask) {
      Split(first, (last & ~mask) - 1, out);
      Split(last & ~mask, last, out);
      return;
    }
  }
  Utf8Range range{.length = length, .first = {}, .last = {}};
  for (std::size_t i = 0; i < a.size(); ++i) {
    range.first[i] = static_cast<std::uint8_t>(a[i]);
    range.last[i] = static_cast<std::uint8_t>(b[i]);
  }
  out.push_back(range);
}

}  // namespace

std::vector<Utf8Range> Utf8RangesOf(char32_t first, char32_t last) {
  // Where the length of the encoding changes, and the surrogates.
  constexpr struct {
    char32_t first, last;
  } kEqualLength[] = {{0, 0x7F},
                      {0x80, 0x7FF},
                      {0x800, 0xD7FF},
                      {0xE000, 0xFFFF},
                      {0x10000, kLastCode}};
  std::vector<Utf8Range> out;
  for (const auto& part : kEqualLength) {
    const char32_t a = std::max(first, part.first);
    const char32_t b = std::min(last, part.last);
    if (a <= b) Split(a, b, out);
  }
  return out;
}

}  // namespace hearth::grammar
