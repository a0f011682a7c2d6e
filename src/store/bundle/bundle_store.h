// KvStore over one file: it holds the blocks of
// the prompt saved last, so that no directory is needed.
//
// The file is written whole each time. While a long prompt still grows it is
// written when there is as much to add as it holds already, so that all these
// writes together are at most as long as twice the last one.
//
// Threads  every call may be made from any thread.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/mutex.h"
#include "store/bundle/bundle_file.h"
#include "store/kv_store.h"

namespace hearth {

class BundleStore final : public KvStore {
 public:
  BundleStore(std::string path, const StoreOptions& options);

  StoreMatch Lookup(const BlockChain& prompt, const KvSpec& spec,
                    std::size_t first_block) override;
  int CountStored(const BlockChain& prompt, std::size_t first_block) override;
  std::vector<std::vector<std::int32_t>> RecentPrompts(
      const KvIdentity& identity, std::size_t n_max,
      const WantedPrompt& wanted) override;
  Result<void> SaveBlocks(const BlockChain& prompt, const KvSpec& spec,
                          std::size_t first_block,
                          std::span<const ByteSpan> payloads) override;
  Result<void> SaveState(const BlockChain& prompt, const KvSpec& spec,
                         std::size_t n_tokens, ByteSpan payload) override;
  void DropState(const BlockChain& prompt, std::size_t n_tokens) override;
  Result<void> SaveManifest(const BlockChain& prompt, const KvSpec& spec,
                            const std::string& preview) override;
  void GiveUp() override { stop_ = true; }

 private:
  // The prompt's blocks and states, from memory and from the file as it is, as
  // a new file.
  Result<void> WriteFile(const BlockChain& prompt, const KvSpec& spec)
      HEARTH_REQUIRES(mutex_);

  std::map<std::size_t, ByteSpan> StatesOf(
      const BlockChain& prompt, std::span<const StoredState> in_file) const
      HEARTH_REQUIRES(mutex_);

  const std::string path_;
  const StoreOptions options_;
  FileOps& ops_;
  std::atomic<bool> stop_{false};
  Mutex mutex_;  // held while the file is written
  // Blocks that the file does not hold yet.
  std::unordered_map<Digest, std::vector<std::byte>> pending_
      HEARTH_GUARDED_BY(mutex_);
  // States, by the id of the prefix that they are behind.
  struct PendingState {
    std::size_t n_tokens = 0;
    std::vector<std::byte> payload;
  };
  std::unordered_map<Digest, PendingState> pending_states_
      HEARTH_GUARDED_BY(mutex_);
  std::unordered_set<Digest> dropped_states_
      HEARTH_GUARDED_BY(mutex_);  // that the file still holds
  std::uint64_t pending_bytes_ HEARTH_GUARDED_BY(mutex_) = 0;
  std::uint64_t file_bytes_ HEARTH_GUARDED_BY(mutex_) =
      0;  // of the blocks that were written last
};

}  // namespace hearth
