// Turns the spelled merges of a file into merges between ids.
//
// A large vocabulary has hundreds of thousands of merges and two look-ups in a
// table larger than the caches for each, so look-ups run in batches whose
// memory is asked for ahead of time.
// Errors  Finish names the first merge of which a side, or what it becomes, is
//         not a piece.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/bpe/vocab.h"

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
  void Add(std::string_view left, std::string_view right);
  // The number of the first merge that is not in the vocabulary, if any.
  std::optional<std::size_t> Finish();
  // After Finish.
  const std::vector<MergeTable::Merge>& merges() const { return merges_; }

 private:
  static constexpr std::size_t kBatch = 16;
  struct Pending {
    std::size_t index, start, border, end;  // in joined_
    std::uint64_t left_hash, right_hash;
  };

  bool Unspell(std::string_view spelling);
  void Flush();
  std::uint32_t Merged(std::string_view whole, std::size_t border);

  const Vocab& vocab_;
  bool bytes_;
  std::string_view later_prefix_;
  std::string joined_;  // the texts of the batch, left and right together
  std::array<Pending, kBatch> pending_;
  std::size_t n_pending_ = 0;
  std::size_t n_added_ = 0;
  std::uint32_t guess_ = 0;
  std::optional<std::size_t> missing_;
  std::vector<MergeTable::Merge> merges_;
};

}  // namespace hearth
