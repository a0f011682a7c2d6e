// Remembers the ids of words met before. Words repeat: in running text nine of
// ten pieces are in here.
//
// A direct-mapped table of 64-byte lines; a new word takes the place of the old
// one. Lookups compare the whole word, so there are no wrong answers.
// Threads none: each thread has its own.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "text/bpe/flat_table.h"

namespace hearth {

class WordCache {
 public:
  static constexpr std::size_t kTextMax = 38;
  static constexpr std::size_t kIdsMax = 6;

  // Makes room for the words of `n_bytes` of text; forgets when it grows. A
  // short text would spend more on clearing a large table than on its words.
  void SizeFor(std::size_t n_bytes) {
    constexpr std::size_t kBytesPerWord = 4;
    const int lines_log2 =
        std::clamp(static_cast<int>(std::bit_width(n_bytes / kBytesPerWord)),
                   kLinesLog2Min, kLinesLog2Max);
    if (64 - lines_log2 >= shift_) return;
    shift_ = 64 - lines_log2;
    lines_.assign(std::size_t{1} << lines_log2, Line());
  }

  // Appends the ids of `word` and returns true when it is known.
  bool Find(std::string_view word, std::uint64_t hash,
            std::vector<std::int32_t>& out) const {
    if (lines_.empty()) return false;
    const Line& line = lines_[hash >> shift_];
    if (line.length != word.size() ||
        std::memcmp(line.text, word.data(), word.size()) != 0) {
      return false;
    }
    out.insert(out.end(), line.ids, line.ids + line.n_ids);
    return true;
  }

  void Keep(std::string_view word, std::uint64_t hash, const std::int32_t* ids,
            std::size_t n_ids) {
    if (word.size() > kTextMax || n_ids > kIdsMax) return;
    if (lines_.empty()) SizeFor(0);
    Line& line = lines_[hash >> shift_];
    line.length = static_cast<std::uint8_t>(word.size());
    line.n_ids = static_cast<std::uint8_t>(n_ids);
    std::memcpy(line.text, word.data(), word.size());
    std::copy_n(ids, n_ids, line.ids);
  }

 private:
  static constexpr int kLinesLog2Min = 6, kLinesLog2Max = 15;
  struct alignas(64) Line {
    std::uint8_t length = 0, n_ids = 0;  // length 0: empty
    char text[kTextMax];
    std::int32_t ids[kIdsMax];
  };
  std::vector<Line> lines_;
  int shift_ = 64;  // of a hash; what is left is its line
};

}  // namespace hearth
