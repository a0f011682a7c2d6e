#include "engine/prompt_cache/prompt_cache.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

#include "base/time_limit.h"
#include "cache/states/state_layout.h"
#include "store/directory/dir_store.h"

namespace hearth {
namespace {

// Full blocks among the first `n_have` tokens.
std::size_t HeldBlocks(const KvSpec& spec, int n_have) {
  return static_cast<std::size_t>(n_have / spec.block_tokens);
}

// The search by text: leading tokens that tell most prompts apart, and how many
// are compared to the end.
constexpr std::size_t kTokensToTell = 32;
constexpr std::size_t kPromptsToCompare = 16;

// Bytes that a lookup of so many tokens reads, with the states behind them.
std::uint64_t BytesRead(const KvSpec& spec, int n_tokens) {
  return spec.bytes_per_token() * static_cast<std::uint64_t>(n_tokens) +
         StateLayout(spec.states).bytes();
}

}  // namespace

PromptCache::PromptCache(const EngineOptions& options)
    : always_load_(options.cache_always),
      by_text_(options.cache_by_text),
      has_remote_(!options.cache_remote.empty()),
      n_threads_(options.n_threads),
      queue_(std::make_unique<SaveQueue>()) {}

Result<std::unique_ptr<PromptCache>> PromptCache::Open(
    const EngineOptions& options) {
  if (options.prompt_cache_file.empty() && options.prompt_cache_dir.empty()) {
    if (!options.cache_remote.empty()) {
      return {
          Code::kInvalidArgument,
          "a remote cache stands behind a prompt cache directory: name one, "
          "too"};
    }
    if (!options.cache_key_file.empty()) {
      return {Code::kInvalidArgument,
              "a key file encrypts a prompt cache: name its directory or file, "
              "too"};
    }
    return std::unique_ptr<PromptCache>();
  }
  std::unique_ptr<PromptCache> cache(new PromptCache(options));
  if (!options.cache_key_file.empty()) {
    HEARTH_ASSIGN(cache->vault_, Vault::FromKeyFile(options.cache_key_file));
  }
  StoreOptions store_options;
  store_options.vault = cache->vault_;
  store_options.remote_url = options.cache_remote;
  store_options.remote_deadline_ms = options.cache_remote_deadline_ms;
  store_options.remote_trusted = options.cache_remote_trusted;
  if (!options.cache_remote_key_file.empty()) {
    HEARTH_ASSIGN(store_options.remote_key,
                  Vault::FromKeyFile(options.cache_remote_key_file));
  }
  store_options.verify = options.cache_verify;
  store_options.disk_budget_bytes = options.cache_disk_budget_bytes;
  store_options.free_space_reserve_bytes = options.cache_free_reserve_bytes;
  const bool to_file = !options.prompt_cache_file.empty();
  auto store = to_file
                   ? KvStore::OpenFile(options.prompt_cache_file, store_options)
                   : KvStore::Open(options.prompt_cache_dir, store_options);
  if (store.ok()) {
    cache->store_ = std::move(*store);
    if (!to_file) {
      cache->directory_ = options.prompt_cache_dir;
      cache->side_files_.emplace(cache->directory_, LimitsOf(store_options),
                                 cache->vault_);
    }
  } else if (store.error().code == Code::kInvalidArgument ||
             store.error().code == Code::kIncompatible) {
    return store.error();
  } else {
    cache->open_error_ = "prompt cache is off: " + store.error().message;
  }
  return cache;
}

void PromptCache::SetIdentity(KvIdentity identity) {
  identity_ = std::move(identity);
  if (vault_ != nullptr) {
    identity_.name_space = ToHex(vault_->name_key()) + identity_.name_space;
  }
  if (!side_files_.has_value()) return;
  // What was measured holds for one machine, if at all.
  char host[256] = {};
  ::gethostname(host, sizeof(host) - 1);
  speed_memo_.emplace(*side_files_,
                      Sha256()
                          .Field("hearth kv speed")
                          .Field(identity_.model_id)
                          .Field(identity_.format_id)
                          .Field(std::string_view(host))
                          .Field(static_cast<std::uint64_t>(n_threads_))
                          .Finish());
  const MutexLock lock(mutex_);
  choice_ = LoadChoice(speed_memo_->Find());
}

KvIdentity PromptCache::IdentityIn(const std::string& key_space) const {
  KvIdentity identity = identity_;
  if (!key_space.empty()) {
    // No name that a user gives holds a zero byte.
    identity.name_space += std::string(1, '\0') + key_space;
  }
  return identity;
}

std::optional<LoadChoice::Prediction> PromptCache::Predict(const KvSpec& spec,
                                                           int n_tokens) const {
  const MutexLock lock(mutex_);
  return choice_.Predict(n_tokens, BytesRead(spec, n_tokens));
}

std::optional<PromptCache::Declined> PromptCache::Decline(
    const KvSpec& spec, const BlockChain& prompt, int n_have) {
  const auto n_tokens = static_cast<int>(prompt.tokens().size());
  if (!has_remote_ && n_have >= spec.block_tokens &&
      store_->CountStored(prompt) <= n_have &&
      store_->CountStored(prompt, HeldBlocks(spec, n_have)) <= n_have) {
    return Declined{"tokens " + std::to_string(n_have) + ".." +
                        std::to_string(n_tokens - 1) + " are not stored",
                    MissKind::kNotStored};
  }
  if (always_load_) return std::nullopt;
  // Both grow with the tokens: when loading pays for all, it pays for a part.
  const auto whole = Predict(spec, n_tokens);
  if (!whole.has_value() || whole->load_pays()) return std::nullopt;
  const int n_stored = store_->CountStored(prompt);
  const auto prediction = Predict(spec, n_stored);
  if (prediction->load_pays()) return std::nullopt;
  Note([](LoadChoice& choice) { choice.NoteDeclined(); });
  return Declined{"stored, but " + Describe(n_stored, *prediction) +
                      "; they can be loaded always",
                  MissKind::kSlower};
}

// What the caller has may reach over a block that was evicted, to others that
// were not.
StoreMatch PromptCache::LongestMatch(const KvSpec& spec,
                                     const BlockChain& prompt, int n_have) {
  StoreMatch match = store_->Lookup(prompt, spec);
  const std::size_t n_held = HeldBlocks(spec, n_have);
  if (static_cast<std::size_t>(match.end()) >= prompt.BeginOf(n_held)) {
    return match;
  }
  StoreMatch behind = store_->Lookup(prompt, spec, n_held);
  if (behind.n_tokens == 0) return match;
  behind.warnings.insert(behind.warnings.begin(), match.warnings.begin(),
                         match.warnings.end());
  return behind;
}

StoreMatch PromptCache::Lookup(const std::string& key_space, const KvSpec& spec,
                               std::span<const std::int32_t> tokens,
                               int n_have) {
  StoreMatch match;
  if (store_ != nullptr) {
    const BlockChain prompt(IdentityIn(key_space), tokens, spec.block_tokens);
    if (auto declined = Decline(spec, prompt, n_have); declined.has_value()) {
      match.miss_reason = std::move(declined->reason);
      match.miss_kind = declined->kind;
    } else {
      const auto start = std::chrono::steady_clock::now();
      try {
        match = LongestMatch(spec, prompt, n_have);
      } catch (const std::bad_alloc&) {
        match = {};
        match.miss_reason = "no memory to load what is stored";
        match.miss_kind = MissKind::kNoMemory;
        match.warnings.push_back(match.miss_reason);
      }
      const std::chrono::duration<double, std::milli> took =
          std::chrono::steady_clock::now() - start;
      if (match.n_tokens_remote == 0) {
        const std::uint64_t bytes =
            match.n_tokens == 0 ? 0 : BytesRead(spec, match.n_tokens);
        Note([&](LoadChoice& choice) { choice.NoteLoad(bytes, took.count()); });
      }
    }
  } else {
    match.miss_reason = open_error_;
    match.miss_kind = MissKind::kDefect;
    match.warnings.push_back(open_error_);
  }
  const auto error = queue_->TakeError();
  const MutexLock lock(mutex_);
  if (error.has_value() && error->message != reported_error_) {
    reported_error_ = error->message;
    match.warnings.push_back("prompt cache not saved: " + error->message);
  }
  return match;
}

StoreMatch PromptCache::MapStored(const std::string& key_space,
                                  const KvSpec& spec,
                                  std::span<const std::int32_t> tokens) {
  if (store_ == nullptr) return {};
  // Of blocks alone: what is in memory has its states there.
  KvSpec blocks = spec;
  blocks.states.clear();
  return store_->Lookup(
      BlockChain(IdentityIn(key_space), tokens, spec.block_tokens), blocks);
}

void PromptCache::NotePrefill(int n_tokens, double ms) {
  Note([&](LoadChoice& choice) { choice.NotePrefill(n_tokens, ms); });
}

// What is kept goes to the writer thread: a lookup waits for no file.
template <typename F>
void PromptCache::Note(const F& change) {
  std::optional<KvSpeeds> changed;
  {
    const MutexLock lock(mutex_);
    change(choice_);
    if (store_ == nullptr || !speed_memo_.has_value()) return;
    changed = choice_.TakeChanged();
  }
  if (!changed.has_value()) return;
  // A memo that cannot be written costs one worse choice.
  (void)queue_->TryEnqueue(
      [memo = *speed_memo_, speeds = *changed]() -> Result<void> {
        (void)memo.Save(speeds);
        return {};
      },
      0);
}

std::optional<TextMatch> PromptCache::FindText(
    const KvSpec& spec, const Tokenizer& tokenizer,
    std::span<const std::int32_t> ids) {
  if (store_ == nullptr) return std::nullopt;
  const int n_covered =
      store_->CountStored(BlockChain(identity_, ids, spec.block_tokens));
  if (static_cast<int>(ids.size()) - n_covered <= spec.block_tokens) {
    return std::nullopt;
  }
  // A prompt that begins with other text is not read further.
  const std::string text = SpellTokens(tokenizer, ids);
  const auto begins_alike = [&](std::span<const std::int32_t> first) {
    const std::string start = SpellTokens(
        tokenizer, first.first(std::min(first.size(), kTokensToTell)));
    return !start.empty() && text.starts_with(start);
  };
  const auto stored =
      store_->RecentPrompts(identity_, kPromptsToCompare, begins_alike);
  auto match = FindByText(tokenizer, ids, stored, n_covered, spec);
  if (!match.has_value()) return match;
  // The blocks may be gone, whatever the manifest says.
  const int n_full = match->n_usable / spec.block_tokens * spec.block_tokens;
  const int n_there = store_->CountStored(BlockChain(
      identity_, std::span(match->ids).first(static_cast<std::size_t>(n_full)),
      spec.block_tokens));
  if (n_there < n_full) return std::nullopt;
  return match;
}

PromptIds PromptCache::PreferStored(const KvSpec& spec,
                                    const Tokenizer& tokenizer,
                                    std::vector<std::int32_t> ids) {
  if (by_text_) {
    auto match = FindText(spec, tokenizer, ids);
    if (match.has_value()) return {std::move(match->ids), match->n_from_store};
  }
  return {std::move(ids), 0};
}

std::uint64_t PromptCache::n_lost() const {
  const SaveQueueStats stats = queue_->stats();
  return stats.n_failed + stats.n_skipped;
}

Result<void> PromptCache::Drain(double seconds_max) {
  const TimeLimit limit(seconds_max);
  Result<void> written =
      seconds_max <= 0
          ? queue_->Drain()
          : queue_->DrainFor(std::chrono::duration<double>(seconds_max));
  if (!written.ok()) {
    written = Error{written.error().code,
                    "prompt cache not saved: " + written.error().message};
  }
  if (store_ == nullptr) return written;
  if (seconds_max > 0 && queue_->giving_up()) store_->GiveUp();
  const Result<void> sent = store_->Drain(limit.Left());
  // Whoever waits no longer has no time for what else is on its way either.
  if (seconds_max > 0 && !(written.ok() && sent.ok())) store_->GiveUp();
  if (written.ok() || sent.ok()) return written.ok() ? sent : written;
  return {written.error().code,
          written.error().message + "; " + sent.error().message};
}

}  // namespace hearth
