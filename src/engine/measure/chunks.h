// A long text cut into chunks of equal length that a model computes each alone:
// what perplexities and importance matrices are measured on.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "hearth/result.h"
#include "text/tokenizer.h"

namespace hearth {

struct TextChunks {
  int context_tokens = 0;
  int n_chunks = 0;
  std::int64_t n_text_tokens = 0;
  bool begins_with_bos = false;
  // [n_chunks][context_tokens]; where the model adds a BOS, it stands in the
  // place of each chunk's first token.
  std::vector<std::int32_t> tokens;
};

// Chunks of 512 tokens where nobody says how many.
inline constexpr int kChunkTokensDefault = 512;

// `context_tokens` 0: kChunkTokensDefault, or `context_max` where that is less.
// `n_chunks_max` 0: all. What is left of the text at its end is not used.
// Special tokens are not read in the text. kInvalidArgument for a text of less
// than a chunk, and a chunk of less than 4 tokens or more than `context_max`.
Result<TextChunks> CutIntoChunks(const Tokenizer& tokenizer,
                                 std::string_view text, int context_tokens,
                                 int n_chunks_max, int context_max);

}  // namespace hearth
