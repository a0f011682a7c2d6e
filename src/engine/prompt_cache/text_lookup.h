// A prompt whose text is stored under other token ids.
//
// The ids that a conversation sampled are often not those that the tokenizer
// gives when the whole transcript comes back as text, so the chain of block ids
// misses although all of the text was computed. Here the texts are compared
// instead, and the stored ids are taken up to a place where both have a token
// boundary.
//
// The result decodes to the same bytes. Special tokens count as themselves, not
// as their spelling: where one side has a special token and the other has its
// characters, the match ends.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cache/kv_layout.h"
#include "text/tokenizer.h"

namespace hearth {

// The bytes that ids stand for, special tokens by their spelling.
std::string SpellTokens(const Tokenizer& tokenizer,
                        std::span<const std::int32_t> ids);

struct TextMatch {
  std::vector<std::int32_t> ids;  // for the whole prompt
  int n_from_store = 0;           // leading ones that are a stored prompt's
  int n_usable = 0;  // of them: all, or whole blocks where one cannot be cut
};

// `ids`: the prompt as the tokenizer gives it; the first `n_covered` are stored
// as they are. Of `stored` prompts the one that covers most, when that is at
// least one block of `ids` more; nothing otherwise. `spec`: of the stored
// blocks.
std::optional<TextMatch> FindByText(
    const Tokenizer& tokenizer, std::span<const std::int32_t> ids,
    std::span<const std::vector<std::int32_t>> stored, int n_covered,
    const KvSpec& spec);

}  // namespace hearth
