// The well-known tokens after which an answer is over, whatever eos is.
#pragma once

#include <string_view>

namespace hearth {

struct TokenizerSpec;

// Whether a token of this spelling ends an answer in every vocabulary that has
// it. "</s>" is not among them: where it is no eos, it may be a tag of HTML.
// Source  the tokens that llama.cpp takes for the end of generation.
bool EndsAnswers(std::string_view spelling);

// Adds eos and the well-known end tokens among `spec.added` to `spec.ends`,
// which stays ascending and without repeats.
void FindEnds(TokenizerSpec& spec);

}  // namespace hearth
