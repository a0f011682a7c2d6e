// Remembers the ids of words met before. Words repeat: in running text nine of
// ten pieces are in here.
//
// A direct-mapped table of 64-byte lines; a new word takes the place of the old
// one. Lookups compare the whole word, so there are no wrong answers.
// Threads none: each thread has its own.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "text/flat_table.h"

namespace hearth {

class WordCache {
 public:
  static constexpr std::size_t kTextMax = 38;
  static constexpr std::size_t kIdsMax = 6;

  // Appends the ids of `word` and returns true when it is known.
  bool Find(std::string_view word, std::uint64_t hash,
            std::vector<std::int32_t>& out) const {
    if (lines_.empty()) return false;
    const Line& line = lines_[hash >> kShift];
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
    if (lines_.empty()) lines_.resize(std::size_t{1} << kLinesLog2);
    Line& line = lines_[hash >> kShift];
    line.length = static_cast<std::uint8_t>(word.size());
    line.n_ids = static_cast<std::uint8_t>(n_ids);
    std::memcpy(line.text, word.data(), word.size());
    std::copy_n(ids, n_ids, line.ids);
  }

 private:
  static constexpr int kLinesLog2 = 15;
  static constexpr int kShift = 64 - kLinesLog2;
  struct alignas(64) Line {
    std::uint8_t length = 0, n_ids = 0;  // length 0: empty
    char text[kTextMax];
    std::int32_t ids[kIdsMax];
  };
  std::vector<Line> lines_;
};

}  // namespace hearth
