// Splits text into words before merging: merges never cross a word's border.
//
// Errors  Make: kUnsupported for a pattern that is not understood. Split:
//         kResourceFull from a regular expression.
// Threads const; each thread brings its own SplitScratch.
#pragma once

#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/result.h"
#include "text/split/regex.h"
#include "text/split/split_patterns.h"
#include "text/step.h"

namespace hearth {

struct SplitScratch {
  RegexScratch regex;
  std::vector<std::string_view> pieces, others;
  std::deque<std::string> storage;  // texts that a step rewrote
};

class PreTokenizer {
 public:
  static Result<PreTokenizer> Make(std::span<const Step> steps,
                                   const std::string& what);

  // Fills scratch.pieces, in order, none empty; valid until the next call.
  // `at_start`: `text` begins the whole input. REQUIRES: valid UTF-8.
  Result<void> Split(std::string_view text, bool at_start,
                     SplitScratch& scratch) const;

  // When the whole pipeline is one hand-written pattern, that pattern: the
  // caller may then walk the text with NextPiece and skip Split.
  std::optional<SplitPattern> only_pattern() const { return only_pattern_; }
  // Pieces come out spelled in the byte alphabet.
  bool spells_bytes() const { return spells_bytes_; }

 private:
  struct Runnable {
    Step step;
    std::optional<SplitPattern> pattern;
    std::vector<Regex> regex;
    bool spell = false;  // kByteLevel: later steps need the spelling
  };
  Result<void> Apply(const Runnable& runnable, std::string_view piece,
                     bool at_start, SplitScratch& scratch) const;

  std::vector<Runnable> steps_;
  std::optional<SplitPattern> only_pattern_;
  bool spells_bytes_ = false;
};

}  // namespace hearth
