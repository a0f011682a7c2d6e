// Finds the texts that end an answer in text that comes in pieces.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace hearth {

class StopTexts {
 public:
  // REQUIRES: none is empty.
  explicit StopTexts(std::vector<std::string> texts)
      : texts_(std::move(texts)) {}

  // The text that may be shown now: all but an ending that may turn out to be
  // the beginning of a stop text, or all before the stop text that came. Of
  // several the one that is complete first counts, of these the longest: the
  // result does not depend on the pieces.
  std::string Push(std::string_view text);
  // The stop text that came; empty: none yet.
  const std::string& found() const { return found_; }
  // What was held back; nothing after a stop text.
  std::string Flush();

 private:
  const std::vector<std::string> texts_;
  std::string held_;
  std::string found_;
};

}  // namespace hearth
