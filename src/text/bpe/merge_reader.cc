#include "text/bpe/merge_reader.h"

#include <algorithm>

#include "text/unicode/byte_alphabet.h"

namespace hearth {

bool MergeReader::Unspell(std::string_view spelling) {
  if (bytes_) return AppendUnspelled(joined_, spelling);
  joined_ += spelling;
  return true;
}

void MergeReader::Add(std::string_view left, std::string_view right) {
  Pending one{};
  one.index = n_added_++;
  one.start = joined_.size();
  if (!Unspell(left)) return;
  one.border = joined_.size();
  if (!Unspell(right)) {
    joined_.resize(one.start);
    return;
  }
  one.end = joined_.size();
  const std::string_view joined = joined_;
  one.left_hash =
      HashText(joined.substr(one.start, one.border - one.start), vocab_.seed);
  one.right_hash = HashText(joined.substr(one.border), vocab_.seed);
  const std::size_t mask = vocab_.slots.size() - 1;
  __builtin_prefetch(vocab_.slots.data() + (one.left_hash & mask));
  __builtin_prefetch(vocab_.slots.data() + (one.right_hash & mask));
  pending_[n_pending_++] = one;
  if (n_pending_ == kBatch) Flush();
}

std::optional<std::size_t> MergeReader::Finish() {
  Flush();
  return missing_;
}

void MergeReader::Flush() {
  const std::size_t mask = vocab_.slots.size() - 1;
  for (std::size_t i = 0; i < n_pending_; ++i) {
    for (const std::uint64_t hash :
         {pending_[i].left_hash, pending_[i].right_hash}) {
      const std::uint32_t id = vocab_.slots[hash & mask].id;
      if (id != kNoId) __builtin_prefetch(vocab_.offsets.data() + id);
    }
  }
  const std::string_view joined = joined_;
  for (std::size_t i = 0; i < n_pending_; ++i) {
    const Pending& one = pending_[i];
    const std::string_view whole =
        joined.substr(one.start, one.end - one.start);
    const std::size_t border = one.border - one.start;
    MergeTable::Merge merge;
    merge.left = vocab_.FindHashed(whole.substr(0, border), one.left_hash);
    merge.right = vocab_.FindHashed(whole.substr(border), one.right_hash);
    merge.id = Merged(whole, border);
    if (merge.left == kNoId || merge.right == kNoId || merge.id == kNoId) {
      if (!missing_) missing_ = one.index;
    } else {
      guess_ = merge.id + 1;
      merges_.push_back(merge);
    }
  }
  n_pending_ = 0;
  joined_.clear();
}

std::uint32_t MergeReader::Merged(std::string_view whole, std::size_t border) {
  if (!later_prefix_.empty()) {
    const std::size_t cut =
        std::min(later_prefix_.size(), whole.size() - border);
    return vocab_.Find(std::string(whole.substr(0, border)) +
                       std::string(whole.substr(border + cut)));
  }
  // Most files number their pieces in the order of the merges.
  if (guess_ < vocab_.size() && (vocab_.flags[guess_] & kPieceFindable) != 0 &&
      vocab_.Text(guess_) == whole) {
    return guess_;
  }
  return vocab_.Find(whole);
}

}  // namespace hearth
