// A grammar as what a sampler asks before and after each token.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "grammar/grammar.h"
#include "hearth/constraint.h"
#include "text/tokenizer.h"

namespace hearth {

// The answer is a text of `grammar`; an end marker may come where the text may
// end.
std::unique_ptr<TokenConstraint> MakeGrammarConstraint(
    std::shared_ptr<grammar::Grammar> grammar,
    std::shared_ptr<const grammar::TokenTrie> trie,
    std::shared_ptr<const Tokenizer> tokenizer,
    std::vector<std::int32_t> end_ids);

}  // namespace hearth
