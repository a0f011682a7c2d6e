// Chunks of a text through the model, several of them in a step where they are
// short.
#pragma once

#include <functional>
#include <span>

#include "engine/kv_plan.h"
#include "engine/measure/chunks.h"
#include "engine/session/step_runner.h"

namespace hearth {

// Logits of consecutive tokens of one chunk.
struct ChunkLogits {
  int first_token;  // of the first row, in the chunk
  int n_rows;
  std::span<const std::int32_t> chunk;  // [context_tokens]
  std::span<const float> logits;        // [n_rows][vocab_size]
};

struct ChunkRun {
  // Tokens of a chunk that are computed: the first ones.
  int n_tokens;
  // From this token on logits are wanted; n_tokens: of none.
  int first_logits;
  std::function<void(std::span<const ChunkLogits>)> on_logits;  // or null
  // As PerplexityOptions::progress, over all chunks.
  std::function<bool(std::int64_t done, std::int64_t total)> progress;
};

// kCancelled when `progress` says so, else what forward steps refuse.
Result<void> RunChunks(const KvPlan& kv, StepRunner& steps,
                       const TextChunks& chunks, const ChunkRun& run);

}  // namespace hearth
