#include <algorithm>
#include <utility>

#include "base/stopwatch.h"
#include "engine/draft/drafter.h"
#include "engine/engine_core.h"
#include "engine/session/session_core.h"
#include "model/forward.h"

namespace hearth {
namespace {

// Tokens that are read between two looks at whether somebody wants an end.
constexpr int kReadStepTokens = 256;

class DraftModel final : public Drafter {
 public:
  // `n_vocab`: of the target.
  DraftModel(std::shared_ptr<SessionCore> session, std::int32_t n_vocab)
      : session_(std::move(session)), n_vocab_(n_vocab) {}

  Result<void> Propose(const DraftRequest& request,
                       std::vector<DraftToken>& drafts) override {
    HEARTH_ASSIGN(const auto visit, SessionCore::Visit::Enter(*session_));
    const auto n_history = static_cast<int>(request.tokens.size());
    const int n =
        std::min(request.n_tokens_max,
                 session_->engine().kv.context_tokens() - n_history + 1);
    if (n <= 0 || !Knows(request.tokens)) return {};
    HEARTH_TRY(Follow(request));
    n_verified_ = n_history;
    Sampler::Ahead ahead(request.sampler);
    while (true) {
      DraftToken draft;
      ahead.Filter(session_->history().Logits(), session_->history().tokens(),
                   draft.q);
      if (draft.q.candidates.empty()) return {};
      draft.id = request.sampler.Draw(draft.q);
      if (draft.id >= n_vocab_ || !ahead.Keep(draft.id)) return {};
      drafts.push_back(std::move(draft));
      if (static_cast<int>(drafts.size()) == n) return {};
      HEARTH_TRY(session_->Step({&drafts.back().id, 1}, LogitRows::kLast));
    }
  }

  Result<int> Read(std::span<const std::int32_t> tokens,
                   int n_tokens_max) override {
    HEARTH_ASSIGN(const auto visit, SessionCore::Visit::Enter(*session_));
    if (!Knows(tokens) || static_cast<int>(tokens.size()) >
                              session_->engine().kv.context_tokens()) {
      return 0;
    }
    return ReadSome(tokens, n_tokens_max);
  }

  Result<std::unique_ptr<Drafter>> Fork() override {
    HEARTH_ASSIGN(const auto visit, SessionCore::Visit::Enter(*session_));
    HEARTH_ASSIGN(auto session, session_->Fork());
    auto fork = std::make_unique<DraftModel>(std::move(session), n_vocab_);
    fork->n_verified_ = n_verified_;
    return std::unique_ptr<Drafter>(std::move(fork));
  }

  bool draws() const override { return true; }

  void Persist() override {
    const auto visit = SessionCore::Visit::Enter(*session_);
    if (!visit.ok()) return;
    // Guesses are not history.
    const int n = session_->history().n_tokens();
    if (session_->Rewind(std::min(n, n_verified_)).ok()) session_->Persist();
  }

  std::uint64_t kv_physical_bytes() const override {
    const auto visit = SessionCore::Visit::Enter(*session_);
    return visit.ok() ? session_->Usage().physical_bytes : 0;
  }

 private:
  // Vocabularies of one family may end in a different number of unused ids.
  bool Knows(std::span<const std::int32_t> tokens) const {
    const std::int32_t n = session_->engine().model.config.vocab_size;
    return n >= n_vocab_ ||
           std::all_of(tokens.begin(), tokens.end(),
                       [n](std::int32_t id) { return id < n; });
  }

  // Tokens that the target's history has and this one lacks. The newest has
  // just been sampled, and is never there.
  int Lacks(std::span<const std::int32_t> tokens) const {
    const auto n_tokens = static_cast<int>(tokens.size());
    return n_tokens -
           std::min(session_->history().CommonWith(tokens), n_tokens - 1);
  }

  // A step of it. The prompt cache is asked only when more than a block is
  // missing, and once: what was read since is on the way.
  Result<int> ReadSome(std::span<const std::int32_t> tokens, int n_tokens_max) {
    const int block = session_->engine().kv.spec().block_tokens;
    int lacks = Lacks(tokens);
    if (lacks <= block) return 0;
    const History& history = session_->history();
    const auto n_tokens = static_cast<int>(tokens.size());
    if (!reading_ || history.n_tokens() != n_tokens - lacks) {
      HEARTH_ASSIGN(const SyncReport found, session_->Find(tokens));
      reading_ = true;
      read_tokens_ = 0;
      read_ms_ = 0;
      lacks = n_tokens - found.reused_tokens;
    }
    // All but the newest, which is computed with the first guess.
    const int n = std::min({lacks - 1, n_tokens_max, Forward::kStepTokensMax});
    if (n > 0) {
      const Stopwatch clock;
      HEARTH_TRY(session_->Reserve(n_tokens, Relief::kWait));
      HEARTH_TRY(session_->Step(
          tokens.subspan(static_cast<std::size_t>(n_tokens - lacks),
                         static_cast<std::size_t>(n)),
          LogitRows::kNone));
      if (n == lacks - 1) session_->history().kv().KeepState();
      read_tokens_ += n;
      read_ms_ += clock.ms();
      lacks -= n;
    }
    n_verified_ = history.n_tokens();
    // Between two steps its memory may go to others, who have waited longer.
    session_->Rest();
    return lacks <= block ? 0 : lacks - 1;
  }

  // The target's history becomes this one.
  Result<void> Follow(const DraftRequest& request) {
    const auto n_tokens = static_cast<int>(request.tokens.size());
    const int wanted = session_->engine().options.prefill_step_tokens;
    const int step = wanted > 0 ? wanted : kReadStepTokens;
    HEARTH_ASSIGN(int left, ReadSome(request.tokens, 0));
    while (left > 0) {
      const int n_there = n_tokens - 1 - left;
      if (request.progress && !request.progress(n_there, n_tokens)) {
        session_->Persist();
        return {Code::kCancelled, "the draft model's prefill was stopped"};
      }
      HEARTH_ASSIGN(left, ReadSome(request.tokens, step));
    }
    const int n_common = n_tokens - Lacks(request.tokens);
    if (!reading_ || session_->history().n_tokens() != n_common) {
      reading_ = false;
      HEARTH_TRY(session_->Rewind(n_common));
    }
    HEARTH_TRY(session_->Prefill(request.tokens, nullptr));
    if (std::exchange(reading_, false)) {
      session_->NoteRead(read_tokens_, read_ms_);
      session_->saves().SavePrompt(session_->history());
      session_->Rest();
    }
    return {};
  }

  std::shared_ptr<SessionCore> session_;
  std::int32_t n_vocab_;
  int n_verified_ = 0;    // leading tokens of the session that are history
  bool reading_ = false;  // a history that it lagged behind, until it guesses
  int read_tokens_ = 0;   // of it: computed, which took
  double read_ms_ = 0;
};

class DraftModelSource final : public DraftSource {
 public:
  DraftModelSource(std::shared_ptr<EngineCore> core, std::int32_t n_vocab)
      : core_(std::move(core)), n_vocab_(n_vocab) {}

  std::string Describe() const override { return core_->model.config.name; }
  Result<std::unique_ptr<Drafter>> NewDrafter(
      const SessionOptions& options) override {
    HEARTH_ASSIGN(auto session, SessionCore::Make(core_, options));
    return std::unique_ptr<Drafter>(
        std::make_unique<DraftModel>(std::move(session), n_vocab_));
  }

  Result<void> DrainSaves(double seconds_max) override {
    if (core_->prompt_cache == nullptr) return {};
    return core_->prompt_cache->Drain(seconds_max);
  }

 private:
  std::shared_ptr<EngineCore> core_;
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
                     "family, or guess by prompt lookup"};
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

// The same store with the same key, but a cache in place, in full precision and
// without a window, whatever the target's is like: the draft decides speed,
// never text. Every option is named here, so that a new one does not compile
// before somebody has decided what it means for a draft.
EngineOptions OptionsOfDraft(const EngineOptions& of_target) {
  const auto& [model_path, n_threads, n_threads_prefill, prefill_step_tokens,
               adapters, device, gpu_memory_bytes, kv_storage, kv_keys,
               kv_values, kv_growth, kv_preallocate, context_tokens,
               kv_ram_budget_bytes, block_tokens, streaming_sink,
               streaming_window, rope_rounding, draft, draft_tokens,
               verify_model, prompt_cache_dir, prompt_cache_file,
               cache_namespace, cache_disk_budget_bytes,
               cache_free_reserve_bytes, cache_remote, cache_remote_deadline_ms,
               cache_remote_key_file, cache_remote_trusted, cache_key_file,
               cache_verify, cache_previews, cache_always, cache_by_text] =
      of_target;
  // Adapters are of the target's weights.
  static_cast<void>(adapters);
  EngineOptions options{.model_path = draft,
                        .n_threads = n_threads,
                        .n_threads_prefill = n_threads_prefill,
                        .prefill_step_tokens = prefill_step_tokens,
                        // Beside the target where there is room for both.
                        .device = device == DeviceChoice::kCpu
                                      ? DeviceChoice::kCpu
                                      : DeviceChoice::kAuto,
                        .gpu_memory_bytes = gpu_memory_bytes,
                        .kv_ram_budget_bytes = kv_ram_budget_bytes,
                        .block_tokens = block_tokens,
                        .rope_rounding = rope_rounding,
                        .verify_model = verify_model};
  // At most a file, which is the target's.
  if (prompt_cache_dir.empty()) return options;
  options.prompt_cache_dir = prompt_cache_dir;
  options.cache_namespace = cache_namespace;
  options.cache_disk_budget_bytes = cache_disk_budget_bytes;
  options.cache_free_reserve_bytes = cache_free_reserve_bytes;
  options.cache_remote = cache_remote;
  options.cache_remote_deadline_ms = cache_remote_deadline_ms;
  options.cache_remote_key_file = cache_remote_key_file;
  options.cache_remote_trusted = cache_remote_trusted;
  options.cache_key_file = cache_key_file;
  options.cache_verify = cache_verify;
  options.cache_previews = cache_previews;
  options.cache_always = cache_always;
  return options;
}

}  // namespace

Result<std::unique_ptr<DraftSource>> OpenDraftModel(EngineCore& target) {
  HEARTH_ASSIGN(auto core,
                OpenCore(OptionsOfDraft(target.options),
                         {.workers = target.workers,
                          .context_tokens_max = target.kv.context_tokens()},
                         /*on_read=*/nullptr));
  HEARTH_TRY(CheckVocabulary(*target.tokenizer, *core->tokenizer,
                             target.options.draft));
  return std::unique_ptr<DraftSource>(std::make_unique<DraftModelSource>(
      std::move(core), target.model.config.vocab_size));
}

}  // namespace hearth
