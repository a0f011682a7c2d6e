#include "text/merge_reader.h"

#include <algorithm>

#include "text/byte_alphabet.h"

namespace hearth {

bool MergeReader::Add(std::string_view left, std::string_view right) {
  joined_.clear();
  if (bytes_) {
    if (!AppendUnspelled(joined_, left)) return true;
  } else {
    joined_ += left;
  }
  const std::size_t border = joined_.size();
  if (bytes_) {
    if (!AppendUnspelled(joined_, right)) return true;
  } else {
    joined_ += right;
  }
  const std::string_view whole = joined_;
  MergeTable::Merge merge;
  merge.left = vocab_.Find(whole.substr(0, border));
  merge.right = vocab_.Find(whole.substr(border));
  if (!later_prefix_.empty()) {
    const std::size_t cut = std::min(later_prefix_.size(), right.size());
    merge.id = vocab_.Find(std::string(whole.substr(0, border)) +
                           std::string(whole.substr(border + cut)));
  } else if (guess_ < vocab_.size() &&
             (vocab_.flags[guess_] & kPieceFindable) != 0 &&
             vocab_.Text(guess_) == whole) {
    // Most files number their pieces in the order of the merges.
    merge.id = guess_;
  } else {
    merge.id = vocab_.Find(whole);
  }
  if (merge.left == kNoId || merge.right == kNoId || merge.id == kNoId) {
    return false;
  }
  guess_ = merge.id + 1;
  merges_.push_back(merge);
  return true;
}

}  // namespace hearth
