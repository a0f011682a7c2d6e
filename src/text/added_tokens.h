// Finds added tokens ("<|im_start|>", runs of spaces, ...) inside text. They
// are taken out before anything else is split or merged.
//
// Leftmost, then longest, without overlaps; then the rules of each token:
// single_word, lstrip and rstrip.
// Errors  Make: kCorrupt for a token of more than 1,024 bytes (it bounds the
//         steps a character can cost).
// Threads const methods may run at once.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/result.h"

namespace hearth {

// As tokenizer.json lists it.
struct AddedToken {
  std::int32_t id = 0;
  std::string content;
  bool single_word = false;  // only where no word character touches it
  bool lstrip = false;       // takes white space before it along
  bool rstrip = false;       // and after it
  bool normalized = false;   // looked for after normalization
  bool special = false;      // a control token
};

// A stretch of the text: an added token's id, or kPlainText.
inline constexpr std::int32_t kPlainText = -1;
struct TextSpan {
  std::size_t start, end;
  std::int32_t id;
};

class AddedTokenFinder {
 public:
  // `patterns[i]` is what to look for for tokens[i]; the empty ones are not
  // looked for.
  static Result<AddedTokenFinder> Make(std::span<const AddedToken> tokens,
                                       std::span<const std::string> patterns,
                                       const std::string& what);

  bool empty() const { return tokens_.empty(); }
  // Appends spans that cover `text` in order. `with_special` false leaves
  // special tokens in the text.
  void Find(std::string_view text, bool with_special,
            std::vector<TextSpan>& out) const;

 private:
  struct Rules {
    std::int32_t id;
    bool single_word, lstrip, rstrip, special;
  };
  // A node of the trie of patterns; children are a list, sorted by no order.
  struct Node {
    std::int32_t token = -1;    // index into tokens_
    std::int32_t child = -1;    // first child
    std::int32_t sibling = -1;  // next child of the same parent
    char byte = 0;
  };
  struct Hit {
    std::int32_t token = -1;
    std::size_t end = 0;
  };

  std::int32_t ChildOf(std::int32_t node, char byte) const;
  Hit LongestAt(std::string_view text, std::size_t start) const;

  std::vector<Rules> tokens_;
  std::vector<Node> nodes_;
  std::array<std::int32_t, 256> roots_{};  // node by first byte, or -1
};

}  // namespace hearth
