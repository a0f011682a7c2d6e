// The persistent prompt cache as the engine sees it: one directory or one file,
// looked up before a prefill, fed while a long one runs and after the first
// token.
//
// Threads  every call but SetIdentity may be made from any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/files/vault.h"
#include "base/mutex.h"
#include "cache/kv_sequence.h"
#include "engine/prompt_cache/load_choice.h"
#include "engine/prompt_cache/text_lookup.h"
#include "engine/states/state_saves.h"
#include "hearth/engine.h"
#include "hearth/options.h"
#include "store/directory/save_queue.h"
#include "store/kv_store.h"
#include "store/memo/side_files.h"
#include "store/memo/speed_memo.h"

namespace hearth {

class PromptCache {
 public:
  // Nothing when the options name neither a directory nor a file. A directory
  // that cannot be used for this is an error (kInvalidArgument, kIncompatible);
  // one that fails for a reason of the system (kIo, kResourceFull) gives a
  // cache that never hits and warns once.
  static Result<std::unique_ptr<PromptCache>> Open(
      const EngineOptions& options);

  // What entries belong to. Called once, before Lookup and Save: the store must
  // be open first, since the digest's memo lives in it.
  void SetIdentity(KvIdentity identity);

  const KvIdentity& identity() const { return identity_; }

  // The store's root; empty without one.
  const std::string& directory() const { return directory_; }
  // Where other things worth keeping go; null without a directory.
  const SideFiles* side_files() const {
    return side_files_.has_value() ? &*side_files_ : nullptr;
  }

  // The longest stored prefix of `tokens`, or what is stored from the last
  // full block on of the first `n_have`, which the caller has, when that goes
  // further. Nothing is read when no block lies behind these, or when computing
  // is predicted to be faster.
  StoreMatch Lookup(const std::string& key_space, const KvSpec& spec,
                    std::span<const std::int32_t> tokens, int n_have);
  // `ids`, or those of a stored prompt with the same text (text_lookup.h).
  // `tokenizer` made the ids.
  PromptIds PreferStored(const KvSpec& spec, const Tokenizer& tokenizer,
                         std::vector<std::int32_t> ids);
  // The same, whether or not the option asks for it; nothing without a match.
  std::optional<TextMatch> FindText(const KvSpec& spec,
                                    const Tokenizer& tokenizer,
                                    std::span<const std::int32_t> ids);

  // What is stored of `tokens`, whole blocks mapped, whether or not computing
  // would be faster: for memory, not for time.
  StoreMatch MapStored(const std::string& key_space, const KvSpec& spec,
                       std::span<const std::int32_t> tokens);

  // Computing `n_tokens` took `ms`: what loading is compared with.
  void NotePrefill(int n_tokens, double ms);
  // What a lookup of `n_tokens` stored tokens is predicted to take, and to
  // spare; nothing before both were measured.
  std::optional<LoadChoice::Prediction> Predict(const KvSpec& spec,
                                                int n_tokens) const;

  // Stored blocks are decrypted into memory instead of mapped.
  const char* TierOf(const StoreMatch& match) const { return match.tier; }

  // Hands what is not stored yet to the writer thread; returns at once, unless
  // the writer has no room: then it waits, or gives false when it may not.
  // `n_stored` tokens came from the cache. REQUIRES: sequence holds at least
  // tokens.size() tokens, the first ones being `tokens`.
  // `states`: of a spec that has some, those to go along.
  // `preview` goes into the readable sidecar; empty: none.
  bool Save(const std::string& key_space, std::span<const std::int32_t> tokens,
            const KvSequence& sequence, int n_stored,
            const StatesToSave& states, std::string preview, bool may_wait);

  // Hands full blocks of a sequence that still grows to the writer thread:
  // tokens [n_stored, tokens.size()), whole blocks. They are found by walking
  // their ids, with no manifest. False, and nothing happens, when the writer
  // has no room for them now or has failed. States may be behind any of the
  // tokens. REQUIRES: as Save.
  [[nodiscard]] bool SaveBlocks(const std::string& key_space,
                                std::span<const std::int32_t> tokens,
                                const KvSequence& sequence, int n_stored,
                                const StatesToSave& states);

  // Saves that failed or were skipped so far: when it has grown, what was
  // handed over since may be missing.
  std::uint64_t n_lost() const;
  // Saves that were written so far.
  std::uint64_t n_done() const { return queue_->stats().n_done; }
  // Bytes of files in the directory; none without one.
  std::optional<std::uint64_t> stored_bytes() const {
    return store_ == nullptr ? std::nullopt : store_->BytesInUse();
  }
  // Memory that waiting saves keep.
  std::uint64_t waiting_bytes() const {
    return queue_->stats().bytes_in_flight;
  }

  // Until nothing is queued; an error stays for Lookup or Drain to report.
  void WaitForWriter() { queue_->Wait(); }
  // Waits for the writer and for what is sent elsewhere, `seconds_max` at most
  // in all (0: as long as it takes). The first error since the last call, in
  // words that say what it means; kCancelled says what was given up.
  Result<void> Drain(double seconds_max);

 private:
  explicit PromptCache(const EngineOptions& options);
  // Entries of different key spaces have nothing in common.
  KvIdentity IdentityIn(const std::string& key_space) const;
  // Why nothing is to be loaded; nothing when something is.
  struct Declined {
    std::string reason;
    MissKind kind;
  };
  std::optional<Declined> Decline(const KvSpec& spec, const BlockChain& prompt,
                                  int n_have);
  // Changes what is known of this machine's speeds, and keeps it.
  template <typename F>
  void Note(const F& change);

  StoreMatch LongestMatch(const KvSpec& spec, const BlockChain& prompt,
                          int n_have);

  // Blocks of `tokens` from `first` on.
  struct Batch;
  // kIo when a device that has the newest blocks has failed.
  Result<Batch> MakeBatch(const std::string& key_space,
                          std::span<const std::int32_t> tokens,
                          const KvSequence& sequence, int first,
                          const StatesToSave& states) const;
  // What the writer thread does with a batch.
  Result<void> WriteBlocks(const Batch& batch, const BlockChain& chain) const;
  Result<void> WritePrompt(const Batch& batch,
                           const std::string& preview) const;

  bool always_load_, by_text_, has_remote_;
  int n_threads_;
  std::string directory_;
  KvIdentity identity_;
  std::unique_ptr<KvStore> store_;
  std::optional<SideFiles> side_files_;
  std::optional<SpeedMemo> speed_memo_;  // from SetIdentity on
  std::shared_ptr<const Vault> vault_;   // may be null
  std::string open_error_;
  mutable Mutex mutex_;  // of what follows
  LoadChoice choice_ HEARTH_GUARDED_BY(mutex_){KvSpeeds{}};
  // Of a save; the same one is not told twice.
  std::string reported_error_ HEARTH_GUARDED_BY(mutex_);
  // Last, so that it is drained before the rest goes.
  std::unique_ptr<SaveQueue> queue_;
};

}  // namespace hearth
