// Guesses what comes next, for the model to verify (docs/speculation.md).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/sampling/sampler.h"
#include "hearth/engine.h"
#include "hearth/result.h"

namespace hearth {

struct EngineCore;

struct DraftToken {
  std::int32_t id = 0;
  // What `id` was drawn from; no candidates: it was chosen without a draw.
  Distribution q = {};
};

struct DraftRequest {
  // The whole history: what the sequence holds and the newest token, which it
  // does not hold yet.
  std::span<const std::int32_t> tokens;
  // [d_model] of the token before the newest: what its logits were computed
  // from. Empty unless DraftSource::needs_hidden().
  std::span<const float> hidden;
  int n_tokens_max;  // at least 1
  Sampler& sampler;
  const Session::Progress& progress;  // of a long prefill; may be empty
};

// Of one session. Follows its history by itself: each request may go on from
// the one before, rewind, or be another conversation.
class Drafter {
 public:
  virtual ~Drafter() = default;

  // Reads so many tokens at most of a history that it lags behind: the number
  // left. 0: no more than a block, which Propose reads by itself, as it does
  // with all of it when this was not called.
  virtual Result<int> Read(std::span<const std::int32_t>, int) { return 0; }
  // Appends up to n_tokens_max guesses for what follows `tokens`. kCancelled
  // when request.progress said so.
  virtual Result<void> Propose(const DraftRequest& request,
                               std::vector<DraftToken>& drafts) = 0;
  virtual Result<std::unique_ptr<Drafter>> Fork() = 0;
  // Whether guesses are drawn at a temperature (DraftToken::q).
  virtual bool draws() const { return false; }
  // Hands what it holds of the last request's history to the prompt cache.
  virtual void Persist() {}
  virtual std::uint64_t kv_physical_bytes() const { return 0; }
};

// Of one engine, which outlives it and its drafters.
//
// Threads  any. A drafter is used by one thread at a time.
class DraftSource {
 public:
  virtual ~DraftSource() = default;
  virtual std::string Describe() const = 0;
  virtual bool needs_hidden() const { return false; }
  // For a session of these options.
  virtual Result<std::unique_ptr<Drafter>> NewDrafter(
      const SessionOptions& options) = 0;
  // As Engine::DrainSaves, for what drafters hand to the prompt cache.
  virtual Result<void> DrainSaves(double) { return {}; }
};

// What EngineOptions::draft names; null when it names nothing. kIncompatible
// for a draft model of another vocabulary or heads of another model.
Result<std::unique_ptr<DraftSource>> OpenDraftSource(EngineCore& target);

// --- The kinds ---------------------------------------------------------------

// Repeats what followed the last place in the history that ends like it.
std::unique_ptr<DraftSource> MakePromptLookup();
// A second, smaller model with a KV cache of its own.
Result<std::unique_ptr<DraftSource>> OpenDraftModel(EngineCore& target);
// The target's own block for multi-token prediction.
Result<std::unique_ptr<DraftSource>> OpenMtp(EngineCore& target);
// Extra heads on the target's own hidden state.
Result<std::unique_ptr<DraftSource>> OpenDraftHeads(EngineCore& target);

}  // namespace hearth
