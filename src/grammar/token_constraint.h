// What a sampler asks before and after each token.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "grammar/grammar.h"
#include "text/tokenizer.h"

namespace hearth {

// Which tokens may come next, as an answer grows.
class TokenConstraint {
 public:
  virtual ~TokenConstraint() = default;
  // A bit for each id that may come next, [(n_vocab + 63) / 64] words. All zero
  // only when nothing may come any more.
  virtual void Mask(std::span<std::uint64_t> bits) = 0;
  // `id` has come. REQUIRES: its bit was set.
  virtual void Accept(std::int32_t id) = 0;
  // For guesses ahead: tokens accepted so far, and back to such a count.
  virtual int Mark() const = 0;
  virtual void Return(int mark) = 0;
};

// The answer is a text of `grammar`; an end marker may come where the text may
// end. `tokenizer` outlives the constraint.
std::unique_ptr<TokenConstraint> MakeGrammarConstraint(
    std::shared_ptr<grammar::Grammar> grammar,
    std::shared_ptr<const grammar::TokenTrie> trie, const Tokenizer& tokenizer,
    std::vector<std::int32_t> end_ids);

}  // namespace hearth
