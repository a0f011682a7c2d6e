#include "grammar/automaton/token_trie.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

namespace hearth::grammar {
namespace {

// Longer tokens (runs of blanks, rulers) are left out: a grammar never needs
// them, since shorter ones give the same text.
constexpr std::size_t kTokenBytesMax = 1024;

}  // namespace

TokenTrie::TokenTrie(const Tokenizer& tokenizer,
                     std::span<const SpelledToken> spelled)
    : n_vocab_(tokenizer.vocab_size()) {
  std::vector<std::pair<std::string, std::int32_t>> tokens;
  for (std::int32_t id = 0; id < n_vocab_; ++id) {
    const auto own =
        std::find_if(spelled.begin(), spelled.end(),
                     [&](const SpelledToken& token) { return token.id == id; });
    if (own == spelled.end() && tokenizer.IsSpecial(id)) continue;
    std::string bytes =
        own == spelled.end() ? tokenizer.TokenBytes(id) : own->bytes;
    if (bytes.empty() || bytes.size() > kTokenBytesMax) continue;
    const bool forged = own == spelled.end() && !spelled.empty() &&
                        bytes.find(kTokenByte) != std::string::npos;
    if (forged) continue;
    longest_ = std::max(longest_, static_cast<int>(bytes.size()));
    tokens.emplace_back(std::move(bytes), id);
  }
  std::sort(tokens.begin(), tokens.end());
  std::vector<std::int32_t> path;  // the nodes from the root to the last token
  std::string last;
  const auto close = [&](std::size_t depth) {
    while (path.size() > depth) {
      Node& node = nodes_[static_cast<std::size_t>(path.back())];
      node.size = static_cast<std::int32_t>(nodes_.size()) - path.back();
      path.pop_back();
    }
  };
  for (const auto& [bytes, id] : tokens) {
    const auto differs =
        std::mismatch(bytes.begin(), bytes.end(), last.begin(), last.end());
    const auto common = static_cast<std::size_t>(differs.first - bytes.begin());
    close(common);
    for (std::size_t i = common; i < bytes.size(); ++i) {
      path.push_back(static_cast<std::int32_t>(nodes_.size()));
      nodes_.push_back({.byte = static_cast<std::uint8_t>(bytes[i]),
                        .n_tokens = 0,
                        .depth = static_cast<std::uint16_t>(i + 1),
                        .size = 1,
                        .first = static_cast<std::int32_t>(token_ids_.size())});
    }
    Node& node = nodes_[static_cast<std::size_t>(path.back())];
    if (node.n_tokens < std::numeric_limits<std::uint8_t>::max()) {
      token_ids_.push_back(id);
      ++node.n_tokens;
    }
    last = bytes;
  }
  close(0);
}

}  // namespace hearth::grammar
