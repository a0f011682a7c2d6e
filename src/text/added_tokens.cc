#include "text/added_tokens.h"

#include <algorithm>

#include "text/unicode/unicode.h"
#include "text/unicode/utf8.h"

namespace hearth {
namespace {

constexpr std::size_t kContentMax = 1024;

// The character that ends before `position`, and where it starts.
unsigned BitsBefore(std::string_view text, std::size_t position,
                    std::size_t* start) {
  std::size_t i = position - 1;
  while (i > 0 && (static_cast<unsigned char>(text[i]) & 0xC0) == 0x80) --i;
  *start = i;
  std::size_t length;
  return CharBits(DecodeValidUtf8(text.data() + i, &length));
}

unsigned BitsAt(std::string_view text, std::size_t position, std::size_t* end) {
  std::size_t length;
  const char32_t code = DecodeValidUtf8(text.data() + position, &length);
  *end = position + length;
  return CharBits(code);
}

bool TouchesWord(std::string_view text, std::size_t start, std::size_t end) {
  std::size_t ignored;
  return (start > 0 && (BitsBefore(text, start, &ignored) & kCharWord) != 0) ||
         (end < text.size() && (BitsAt(text, end, &ignored) & kCharWord) != 0);
}

}  // namespace

Result<AddedTokenFinder> AddedTokenFinder::Make(
    std::span<const AddedToken> tokens, std::span<const std::string> patterns,
    const std::string& what) {
  AddedTokenFinder made;
  made.roots_.fill(-1);
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    const std::string& pattern = patterns[t];
    if (pattern.empty()) continue;
    if (pattern.size() > kContentMax) {
      return {Code::kCorrupt, what + ": added token " +
                                  std::to_string(tokens[t].id) +
                                  " is longer than 1,024 bytes"};
    }
    std::int32_t node = -1;
    for (const char byte : pattern) {
      std::int32_t next = node < 0
                              ? made.roots_[static_cast<unsigned char>(byte)]
                              : made.ChildOf(node, byte);
      if (next < 0) {
        next = static_cast<std::int32_t>(made.nodes_.size());
        Node fresh;
        fresh.byte = byte;
        if (node < 0) {
          made.roots_[static_cast<unsigned char>(byte)] = next;
        } else {
          fresh.sibling = made.nodes_[static_cast<std::size_t>(node)].child;
          made.nodes_[static_cast<std::size_t>(node)].child = next;
        }
        made.nodes_.push_back(fresh);
      }
      node = next;
    }
    // Two tokens with one spelling: the first one stays.
    Node& last = made.nodes_[static_cast<std::size_t>(node)];
    if (last.token >= 0) continue;
    last.token = static_cast<std::int32_t>(made.tokens_.size());
    const AddedToken& token = tokens[t];
    made.tokens_.push_back({token.id, token.single_word, token.lstrip,
                            token.rstrip, token.special});
  }
  return made;
}

std::int32_t AddedTokenFinder::ChildOf(std::int32_t node, char byte) const {
  std::int32_t child = nodes_[static_cast<std::size_t>(node)].child;
  while (child >= 0 && nodes_[static_cast<std::size_t>(child)].byte != byte) {
    child = nodes_[static_cast<std::size_t>(child)].sibling;
  }
  return child;
}

AddedTokenFinder::Hit AddedTokenFinder::LongestAt(std::string_view text,
                                                  std::size_t start) const {
  Hit hit;
  std::int32_t node = roots_[static_cast<unsigned char>(text[start])];
  for (std::size_t i = start; node >= 0;) {
    ++i;
    const std::int32_t token = nodes_[static_cast<std::size_t>(node)].token;
    if (token >= 0) hit = {token, i};
    if (i == text.size()) break;
    node = ChildOf(node, text[i]);
  }
  return hit;
}

void AddedTokenFinder::Find(std::string_view text, bool with_special,
                            std::vector<TextSpan>& out) const {
  std::size_t done = 0;  // everything before is in `out`
  for (std::size_t i = 0; i < text.size() && !tokens_.empty();) {
    if (roots_[static_cast<unsigned char>(text[i])] < 0) {
      ++i;
      continue;
    }
    const Hit hit = LongestAt(text, i);
    if (hit.token < 0) {
      ++i;
      continue;
    }
    std::size_t start = i, end = hit.end;
    i = hit.end;
    const Rules& rules = tokens_[static_cast<std::size_t>(hit.token)];
    if (rules.special && !with_special) continue;
    if (rules.single_word && TouchesWord(text, start, end)) continue;
    std::size_t next;
    while (rules.lstrip && start > done &&
           (BitsBefore(text, start, &next) & kCharSpace) != 0) {
      start = next;
    }
    start = std::max(start, done);
    while (rules.rstrip && end < text.size() &&
           (BitsAt(text, end, &next) & kCharSpace) != 0) {
      end = next;
    }
    if (done < start) out.push_back({done, start, kPlainText});
    out.push_back({start, end, rules.id});
    done = end;
    i = std::max(i, done);
  }
  if (done < text.size()) out.push_back({done, text.size(), kPlainText});
}

}  // namespace hearth
