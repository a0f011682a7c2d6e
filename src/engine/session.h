// A Session over one KV sequence.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "cache/kv_sequence.h"
#include "engine/draft/drafter.h"
#include "engine/draft/speculation.h"
#include "engine/prompt_cache/prompt_cache.h"
#include "engine/ram_budget.h"
#include "engine/weight_prefetch.h"
#include "hearth/engine.h"
#include "model/forward.h"
#include "text/tokenizer.h"

namespace hearth {

// Without --context, when old tokens are let go of.
inline constexpr int kUnboundedContext = 1 << 30;

// Tokens that a window is done with and that still wait for the store's writer:
// beyond this they are given up, so that a slow disk does not fill the memory.
inline constexpr int kUnsavedTokensMax = 4096;

// What sessions share; owned by the engine, which outlives them.
struct EngineParts {
  LoadedModel model;
  std::unique_ptr<WeightPrefetch> prefetch;  // of `model`
  std::shared_ptr<const Tokenizer> tokenizer;
  std::shared_ptr<ThreadPool> pool;  // a draft model's too
  std::unique_ptr<Forward> forward;
  std::unique_ptr<PromptCache> prompt_cache;  // may be null
  std::unique_ptr<DraftSource> draft;         // may be null
  std::unique_ptr<RamBudget> ram;             // of all sessions
  EngineOptions options;
  KvSpec spec;
  KvRetention retention;
  int context_tokens = 0;

  int n_threads() const {
    return options.n_threads > 0 ? options.n_threads : AvailableCpus();
  }
  int n_threads_prefill() const {
    return options.n_threads_prefill > 0 ? options.n_threads_prefill
                                         : n_threads();
  }
  bool IsEnd(std::int32_t id) const;
  // Whether every KV layer forgets: then memory does not grow with the context.
  bool forgets() const;
  // Blocks in memory at once that a sequence may need.
  int n_kv_blocks() const;
  // An empty sequence with room for the context.
  Result<std::unique_ptr<KvSequence>> NewSequence() const;
};

class SessionImpl final : public Session, private KvHolder {
 public:
  SessionImpl(EngineParts& parts, std::unique_ptr<KvSequence> sequence)
      : parts_(parts), sequence_(std::move(sequence)) {
    parts_.ram->Add(*this);
  }
  ~SessionImpl() override { parts_.ram->Remove(*this); }

  Result<SyncReport> Sync(std::span<const std::int32_t> tokens,
                          const Progress& progress) override;
  Result<GenerateReport> Generate(const GenerateOptions& options,
                                  const OnToken& on_token,
                                  const Progress& on_draft_prefill) override;
  Result<GenerateReport> GenerateUncached(std::span<const std::int32_t> prompt,
                                          const GenerateOptions& options,
                                          const OnToken& on_token) override;
  Result<void> Rewind(int n_tokens) override;
  Result<std::unique_ptr<Session>> Fork() override;
  void Persist() override;
  std::span<const std::int32_t> tokens() const override { return tokens_; }
  KvReport Usage() const override;

  // Guesses ahead from now on. Called once, on an empty session.
  void Speculate(std::unique_ptr<Drafter> drafter);

  // --- For a draft model: a sequence that another one leads ------------------
  // Sync that asks the prompt cache, and `progress`, only when more than a
  // block is missing.
  Result<void> Follow(std::span<const std::int32_t> tokens,
                      const Progress& progress);
  Result<void> Append(std::int32_t token);
  std::span<const float> logits() const { return logits_; }
  Result<std::unique_ptr<SessionImpl>> ForkImpl();

 private:
  // For the memory budget.
  std::uint64_t HeldBytes() const override;
  bool Idle() const override { return !awaiting_generate_; }
  void LetGo() override;
  // Room for the sequence to grow to `n_tokens`.
  Result<void> MakeRoom(int n_tokens);

  Result<void> CheckPrompt(std::span<const std::int32_t> tokens) const;
  // Replaces the sequence by what the prompt cache has when that is more than
  // `n_have` tokens. Returns the tokens now held.
  int Restore(std::span<const std::int32_t> tokens, int n_have,
              SyncReport& report);
  Result<void> Prefill(std::span<const std::int32_t> tokens,
                       const Progress& progress);
  // After a failed save it is not known what the store has.
  void ForgetLostSaves();
  // Appends `id`, emits what follows; see Speculation::Step.
  Result<std::optional<std::int32_t>> GoOn(std::int32_t id,
                                           const GenerateOptions& options,
                                           const Progress& on_draft_prefill,
                                           Emitter& emitter);
  // Hands the first `n_tokens` to the prompt cache, with a manifest.
  void Save(std::size_t n_tokens);
  // Hands full blocks that are not stored yet to the prompt cache while the
  // sequence still grows, so that a killed prefill resumes. Called after each
  // step: does something once every half second, or now, and never waits.
  // Afterwards the first n_stored_ tokens are stored or on their way.
  void SaveSealed(bool now);
  // Tells the sequence what a window may let go of: what is with the writer.
  void KeepUnsaved();
  // How many of the first `n_tokens` can still be handed to the prompt cache.
  int SavableTokens(int n_tokens) const;
  void SavePrompt();

  EngineParts& parts_;
  std::unique_ptr<KvSequence> sequence_;
  std::vector<std::int32_t> tokens_;  // what the sequence holds
  std::vector<float> logits_;         // of the last token; empty: not known
  std::vector<float>
      hidden_;  // what they were computed from, if a drafter asks
  std::unique_ptr<Speculation> speculation_;  // may be null
  // The prompt of the last Sync that is not yet with the prompt cache.
  std::optional<std::size_t> unsaved_prompt_;
  int n_stored_ = 0;  // leading tokens that are stored or on their way
  std::uint64_t fetched_bytes_ = 0;  // of stored blocks: memory, not mapped
  bool awaiting_generate_ = false;   // synced, and nothing sampled from it yet
  bool lacks_manifest_ = false;      // blocks went to the store with none
  std::uint64_t n_lost_ = 0;  // of the prompt cache, when n_stored_ was set
  std::chrono::steady_clock::time_point last_save_ = {};
};

}  // namespace hearth
