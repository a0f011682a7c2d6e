#include <algorithm>
#include <utility>

#include "engine/draft/drafter.h"
#include "engine/engine_impl.h"
#include "engine/session.h"

namespace hearth {
namespace {

class DraftModel final : public Drafter {
 public:
  // Both outlive the object. `n_vocab`: of the target.
  DraftModel(EngineParts& parts, std::unique_ptr<SessionImpl> session,
             std::int32_t n_vocab)
      : parts_(parts), session_(std::move(session)), n_vocab_(n_vocab) {}

  Result<void> Propose(const DraftRequest& request,
                       std::vector<DraftToken>& drafts) override {
    const auto n_history = static_cast<int>(request.tokens.size());
    const int n =
        std::min(request.n_tokens_max, parts_.context_tokens - n_history + 1);
    if (n <= 0 || !Knows(request.tokens)) return {};
    HEARTH_TRY(session_->Follow(request.tokens, request.progress));
    n_verified_ = n_history;
    while (true) {
      DraftToken draft;
      request.sampler.Filter(session_->logits(), draft.q);
      draft.id = request.sampler.Draw(draft.q);
      if (draft.id >= n_vocab_) return {};
      drafts.push_back(std::move(draft));
      if (static_cast<int>(drafts.size()) == n) return {};
      HEARTH_TRY(session_->Append(drafts.back().id));
    }
  }

  Result<std::unique_ptr<Drafter>> Fork() override {
    HEARTH_ASSIGN(std::unique_ptr<SessionImpl> session, session_->ForkImpl());
    auto fork =
        std::make_unique<DraftModel>(parts_, std::move(session), n_vocab_);
    fork->n_verified_ = n_verified_;
    return std::unique_ptr<Drafter>(std::move(fork));
  }

  void Persist() override {
    // Guesses are not history.
    const auto n = static_cast<int>(session_->tokens().size());
    if (session_->Rewind(std::min(n, n_verified_)).ok()) session_->Persist();
  }

  std::uint64_t kv_physical_bytes() const override {
    return session_->Usage().physical_bytes;
  }

 private:
  // Vocabularies of one family may end in a different number of unused ids.
  bool Knows(std::span<const std::int32_t> tokens) const {
    const std::int32_t n = parts_.model.config.vocab_size;
    return n >= n_vocab_ ||
           std::all_of(tokens.begin(), tokens.end(),
                       [n](std::int32_t id) { return id < n; });
  }

  EngineParts& parts_;
  std::unique_ptr<SessionImpl> session_;
  std::int32_t n_vocab_;
  int n_verified_ = 0;  // leading tokens of the session that are history
};

class DraftModelSource final : public DraftSource {
 public:
  DraftModelSource(std::unique_ptr<EngineParts> parts, std::int32_t n_vocab)
      : parts_(std::move(parts)), n_vocab_(n_vocab) {}

  std::string Describe() const override { return parts_->model.config.name; }
  Result<std::unique_ptr<Drafter>> NewDrafter() override {
    HEARTH_ASSIGN(auto sequence, parts_->NewSequence());
    return std::unique_ptr<Drafter>(std::make_unique<DraftModel>(
        *parts_, std::make_unique<SessionImpl>(*parts_, std::move(sequence)),
        n_vocab_));
  }

  Result<void> DrainSaves(double seconds_max) override {
    if (parts_->prompt_cache == nullptr) return {};
    return parts_->prompt_cache->Drain(seconds_max);
  }

 private:
  std::unique_ptr<EngineParts> parts_;
  std::int32_t n_vocab_;
};

// The same text must get the same ids: a guess is an id.
Result<void> CheckVocabulary(const Tokenizer& target, const Tokenizer& draft,
                             const std::string& path) {
  if (target.Fingerprint() == draft.Fingerprint()) return {};
  const auto differ = [&](const std::string& how) {
    return Error{Code::kIncompatible,
                 path +
                     ": not a draft for this model, their vocabularies "
                     "differ (" +
                     how +
                     "); use a smaller model of the same "
                     "family, or --draft prompt-lookup"};
  };
  // Two file formats may spell one vocabulary in two ways of tokenising.
  if (target.vocab_size() != draft.vocab_size()) {
    return differ(std::to_string(draft.vocab_size()) + " tokens, not " +
                  std::to_string(target.vocab_size()));
  }
  for (std::int32_t id = 0; id < target.vocab_size(); ++id) {
    if (target.Piece(id) != draft.Piece(id)) {
      return differ("first at token " + std::to_string(id));
    }
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<DraftSource>> OpenDraftModel(EngineParts& target) {
  const EngineOptions& options = target.options;
  // The same store with the same key, but a cache in place, in full precision
  // and without a window, whatever the target's is like: the draft decides
  // speed, never text.
  EngineOptions draft_options = options;
  draft_options.model_path = options.draft;
  draft_options.draft = {};
  draft_options.kv_storage = KvStorage::kFp32;
  draft_options.kv_keys = draft_options.kv_values = std::nullopt;
  draft_options.kv_growth = KvGrowth::kInPlace;
  draft_options.kv_preallocate = false;
  draft_options.context_tokens = 0;
  draft_options.streaming_sink = draft_options.streaming_window = 0;
  draft_options.prompt_cache_file = {};
  draft_options.cache_by_text = false;
  if (options.prompt_cache_dir.empty()) {  // at most a file, for the target
    draft_options.cache_key_file = draft_options.cache_remote = {};
  }
  HEARTH_ASSIGN(auto parts, OpenParts(draft_options, target.pool));
  HEARTH_TRY(
      CheckVocabulary(*target.tokenizer, *parts->tokenizer, options.draft));
  parts->context_tokens =
      std::min(parts->context_tokens, target.context_tokens);
  return std::unique_ptr<DraftSource>(std::make_unique<DraftModelSource>(
      std::move(parts), target.model.config.vocab_size));
}

}  // namespace hearth
