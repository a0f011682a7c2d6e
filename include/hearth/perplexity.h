// How well a model predicts a text, as llama.cpp's llama-perplexity measures
// it: docs/perplexity.md.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "hearth/engine.h"
#include "hearth/result.h"

namespace hearth {

struct PerplexityOptions {
  // Tokens of a chunk; 0: 512, or the engine's context where that is less.
  int context_tokens = 0;
  int n_chunks_max = 0;  // 0: all
  // Called between steps with the tokens that were computed and those that will
  // be. False stops: kCancelled.
  std::function<bool(std::int64_t done, std::int64_t total)> progress = {};
};

struct PerplexityReport {
  // exp(nats), and its standard error: that of the mean, as if the tokens'
  // surprises were independent, times the perplexity.
  double perplexity = 0, perplexity_error = 0;
  // The mean of -ln p(token), and its standard error.
  double nats = 0, nats_error = 0;
  int context_tokens = 0;
  int n_chunks = 0;
  std::int64_t n_text_tokens = 0;      // of the whole text
  std::int64_t n_computed_tokens = 0;  // that went through the model
  std::int64_t n_counted_tokens = 0;   // whose surprise counts
  bool begins_with_bos = false;        // each chunk does
};

// The text's tokens are cut into chunks of context_tokens; what is left at the
// end is not used. Each chunk is computed alone, its first token replaced by
// the model's BOS where the model adds one. Of a chunk, tokens behind its
// middle count: each of those has context_tokens / 2 + 1 tokens before it at
// least. Special tokens are not read in the text.
// kInvalidArgument for a text of less than a chunk, a chunk of less than 4
// tokens or more than the engine's context; kCorrupt for NaNs.
Result<PerplexityReport> MeasurePerplexity(
    Engine& engine, std::string_view text,
    const PerplexityOptions& options = {});

}  // namespace hearth
