// A Session over one KV sequence.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cache/kv_sequence.h"
#include "engine/prompt_cache.h"
#include "hearth/engine.h"
#include "model/forward.h"
#include "text/tokenizer.h"

namespace hearth {

// What sessions share; owned by the engine, which outlives them.
struct EngineParts {
  LoadedModel model;
  std::shared_ptr<const Tokenizer> tokenizer;
  std::unique_ptr<ThreadPool> pool;
  std::unique_ptr<Forward> forward;
  std::unique_ptr<PromptCache> prompt_cache;  // may be null
  EngineOptions options;
  KvSpec spec;
  int context_tokens = 0;

  bool IsEnd(std::int32_t id) const;
  // An empty sequence with room for the context.
  Result<std::unique_ptr<KvSequence>> NewSequence() const;
};

class SessionImpl final : public Session {
 public:
  SessionImpl(EngineParts& parts, std::unique_ptr<KvSequence> sequence)
      : parts_(parts), sequence_(std::move(sequence)) {}

  Result<SyncReport> Sync(std::span<const std::int32_t> tokens,
                          const Progress& progress) override;
  Result<GenerateReport> Generate(const GenerateOptions& options,
                                  const OnToken& on_token) override;
  Result<GenerateReport> GenerateUncached(std::span<const std::int32_t> prompt,
                                          const GenerateOptions& options,
                                          const OnToken& on_token) override;
  Result<void> Rewind(int n_tokens) override;
  Result<std::unique_ptr<Session>> Fork() override;
  void Persist() override;
  std::span<const std::int32_t> tokens() const override { return tokens_; }
  KvReport Usage() const override;

 private:
  Result<void> CheckPrompt(std::span<const std::int32_t> tokens) const;
  // Replaces the sequence by what the prompt cache has when that is more than
  // `n_have` tokens. Returns the tokens now held.
  int Restore(std::span<const std::int32_t> tokens, int n_have,
              SyncReport& report);
  Result<void> Prefill(std::span<const std::int32_t> tokens,
                       const Progress& progress);
  // Hands the first `n_tokens` to the prompt cache.
  void Save(std::size_t n_tokens);
  void SavePrompt();

  EngineParts& parts_;
  std::unique_ptr<KvSequence> sequence_;
  std::vector<std::int32_t> tokens_;  // what the sequence holds
  std::vector<float> logits_;  // of the last token; empty: not known
  // The prompt of the last Sync that is not yet with the prompt cache.
  std::optional<std::size_t> unsaved_prompt_;
  int n_stored_ = 0;  // leading tokens that came from the prompt cache
};

}  // namespace hearth
