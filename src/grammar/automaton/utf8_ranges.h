// A range of code points as ranges of bytes.
#pragma once

#include <cstdint>
#include <vector>

namespace hearth::grammar {

// All sequences whose byte i is in [first[i], last[i]].
struct Utf8Range {
  int length;  // 1..4
  std::uint8_t first[4], last[4];
};

// The UTF-8 of the code points [first, last], surrogates left out, as few
// ranges as it takes. Empty when first > last.
std::vector<Utf8Range> Utf8RangesOf(char32_t first, char32_t last);

}  // namespace hearth::grammar
