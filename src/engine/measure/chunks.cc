#include "engine/measure/chunks.h"

#include <algorithm>
#include <optional>
#include <string>

namespace hearth {
namespace {

constexpr int kChunkTokensMin = 4;

// What the tokenizer puts before a text; nothing: it puts nothing there.
Result<std::optional<std::int32_t>> BosOf(const Tokenizer& tokenizer) {
  constexpr std::string_view kProbe = "a";
  HEARTH_ASSIGN(
      const auto with,
      tokenizer.Encode(kProbe, {.add_special = true, .parse_special = false}));
  HEARTH_ASSIGN(
      const auto without,
      tokenizer.Encode(kProbe, {.add_special = false, .parse_special = false}));
  const bool added =
      with.size() > without.size() && with.front() == tokenizer.bos_id();
  return added ? std::optional(with.front()) : std::nullopt;
}

}  // namespace

Result<TextChunks> CutIntoChunks(const Tokenizer& tokenizer,
                                 std::string_view text, int context_tokens,
                                 int n_chunks_max, int context_max) {
  TextChunks chunks;
  chunks.context_tokens = context_tokens > 0
                              ? context_tokens
                              : std::min(kChunkTokensDefault, context_max);
  const int n = chunks.context_tokens;
  if (n < kChunkTokensMin || n > context_max) {
    return {Code::kInvalidArgument,
            "chunks of " + std::to_string(n) + " tokens: use " +
                std::to_string(kChunkTokensMin) + " to " +
                std::to_string(context_max) + ", the context"};
  }
  HEARTH_ASSIGN(
      chunks.tokens,
      tokenizer.Encode(text, {.add_special = true, .parse_special = false}));
  chunks.n_text_tokens = static_cast<std::int64_t>(chunks.tokens.size());
  const std::int64_t whole = chunks.n_text_tokens / n;
  if (whole == 0) {
    return {Code::kInvalidArgument,
            "the text has " + std::to_string(chunks.n_text_tokens) +
                " tokens and a chunk is " + std::to_string(n) +
                "; use a longer text or a smaller context"};
  }
  constexpr std::int64_t kMany = std::int64_t{1} << 24;
  chunks.n_chunks = static_cast<int>(
      std::min(whole, n_chunks_max > 0 ? std::int64_t{n_chunks_max} : kMany));
  chunks.tokens.resize(static_cast<std::size_t>(chunks.n_chunks) *
                       static_cast<std::size_t>(n));
  HEARTH_ASSIGN(const std::optional<std::int32_t> bos, BosOf(tokenizer));
  chunks.begins_with_bos = bos.has_value();
  for (int i = 0; bos.has_value() && i < chunks.n_chunks; ++i) {
    chunks.tokens[static_cast<std::size_t>(i) * static_cast<std::size_t>(n)] =
        *bos;
  }
  return chunks;
}

}  // namespace hearth
