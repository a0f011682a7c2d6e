// Turns the spelled merges of a file into merges between ids.
//
// Errors  Add: false when a side, or what they become, is not a piece.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/vocab.h"

namespace hearth {

class MergeReader {
 public:
  // `bytes`: spellings are in the byte alphabet and the pieces raw bytes.
  // `later_prefix` stands before every piece but a word's first.
  MergeReader(const Vocab& vocab, bool bytes, std::string_view later_prefix)
      : vocab_(vocab), bytes_(bytes), later_prefix_(later_prefix) {}

  void Reserve(std::size_t n) { merges_.reserve(n); }

  // The next merge in order of rank. One that text in the byte alphabet can
  // never hold is left out.
  bool Add(std::string_view left, std::string_view right);
  const std::vector<MergeTable::Merge>& merges() const { return merges_; }

 private:
  const Vocab& vocab_;
  bool bytes_;
  std::string_view later_prefix_;
  std::string joined_;
  std::uint32_t guess_ = 0;
  std::vector<MergeTable::Merge> merges_;
};

}  // namespace hearth
