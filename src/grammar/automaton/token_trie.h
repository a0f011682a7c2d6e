// A vocabulary as a trie over the bytes of its tokens: tokens with a common
// beginning are tried together, and all below a byte that cannot come are
// passed over at once.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "text/tokenizer.h"

namespace hearth::grammar {

// Never a byte of UTF-8.
inline constexpr char kTokenByte = '\xFF';

// A token under bytes that no text has.
struct SpelledToken {
  std::int32_t id;
  std::string bytes;
};

class TokenTrie {
 public:
  // One byte below another. Nodes lie in depth-first order: those below node i
  // are (i, i + size).
  struct Node {
    std::uint8_t byte;
    std::uint8_t n_tokens;  // that end here, 255 at most
    std::uint16_t depth;    // 1: the first byte of a token
    std::int32_t size;      // nodes below, itself counted
    std::int32_t first;     // of its tokens in token_ids()
  };

  // All tokens that stand for bytes of running text: control tokens and empty
  // ones are left out. Those of `spelled` stand for these bytes instead; a
  // machine that asks for tokens by such spellings begins each with kTokenByte,
  // and other tokens that hold this byte are left out then.
  explicit TokenTrie(const Tokenizer& tokenizer,
                     std::span<const SpelledToken> spelled = {});

  std::span<const Node> nodes() const { return nodes_; }
  std::span<const std::int32_t> TokensAt(const Node& node) const {
    return {token_ids_.data() + node.first, node.n_tokens};
  }
  int n_vocab() const { return n_vocab_; }
  int longest_token() const { return longest_; }  // bytes

 private:
  std::vector<Node> nodes_;
  std::vector<std::int32_t> token_ids_;
  int n_vocab_ = 0, longest_ = 0;
};

}  // namespace hearth::grammar
