// One token's text to the bytes it shows as: the decoder steps of a vocabulary,
// arranged so that tokens can be decoded one at a time.
//
// The reference decodes a whole list at once. Steps behind "Fuse" act there on
// the joined text; here they act on the first token only, which is the same for
// what such steps do in practice (drop one leading space).
// Errors  Make: kUnsupported for a step that needs later tokens.
// Threads const methods may run at once.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/result.h"
#include "text/bpe/vocab.h"
#include "text/split/regex.h"
#include "text/step.h"

namespace hearth {

class Decoder {
 public:
  static Result<Decoder> Make(std::span<const Step> steps,
                              const std::string& what);

  // Appends what piece `id` gives. REQUIRES: id < vocab.size().
  void Append(const Vocab& vocab, std::uint32_t id, bool at_start,
              std::string& out) const;
  // The same for the text of a piece.
  void AppendText(std::string text, bool at_start, std::string& out) const;

 private:
  struct Runnable {
    Step step;
    bool whole_text = false;  // behind kDecodeFuse
    std::vector<Regex> regex;
  };
  std::vector<Runnable> steps_;
  bool byte_level_first_ = false;
};

}  // namespace hearth
