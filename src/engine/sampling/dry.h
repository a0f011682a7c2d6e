// DRY ("don't repeat yourself"): a penalty on the token that would make a
// repetition longer (hearth/options.h has the definition and its source).
#pragma once

#include <cstdint>
#include <span>

#include "hearth/options.h"
#include "text/tokenizer.h"

namespace hearth {

bool HasDry(const SamplingOptions& options);

// Subtracts the penalties for what would go on a repetition of the end of
// `before`. `logits`: [n_vocab]. `tokenizer` reads the sequence breakers; null:
// there are none.
void PenaliseRepetitions(const SamplingOptions& options,
                         const Tokenizer* tokenizer,
                         std::span<const std::int32_t> before,
                         std::span<float> logits);

// Whole tokens at the end of `tokens` behind the breaker that begins last; all
// of them when there is none. A breaker may span tokens.
int TokensBehindBreaker(std::span<const std::string> breakers,
                        const Tokenizer& tokenizer,
                        std::span<const std::int32_t> tokens);

}  // namespace hearth
