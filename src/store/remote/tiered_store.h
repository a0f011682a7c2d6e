// A directory in front of a shared server. Blocks that are missing here are
// fetched from there, verified like any other, written here and mapped; blocks
// that are saved here are offered there. Tails and manifests stay local.
//
// What the server has counts only with a MAC under the key that its machines
// share, or encrypted under the store's key, unless it is trusted. A block that
// was fetched keeps its MAC in its file here.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "store/directory/dir_store.h"
#include "store/directory/save_queue.h"
#include "store/remote/remote_tier.h"

namespace hearth {

class TieredStore final : public KvStore {
 public:
  TieredStore(std::unique_ptr<DirStore> local, RemoteUrl url,
              const StoreOptions& options);
  ~TieredStore() override;

  StoreMatch Lookup(const BlockChain& prompt, const KvSpec& spec,
                    std::size_t first_block) override;
  int CountStored(const BlockChain& prompt, std::size_t first_block) override {
    return local_->CountStored(prompt, first_block);
  }
  std::vector<std::vector<std::int32_t>> RecentPrompts(
      const KvIdentity& identity, std::size_t n_max,
      const WantedPrompt& wanted) override {
    return local_->RecentPrompts(identity, n_max, wanted);
  }
  Result<void> SaveBlocks(const BlockChain& prompt, const KvSpec& spec,
                          std::size_t first_block,
                          std::span<const ByteSpan> payloads) override;
  Result<void> SaveState(const BlockChain& prompt, const KvSpec& spec,
                         std::size_t n_tokens, ByteSpan payload) override;
  void DropState(const BlockChain& prompt, std::size_t n_tokens) override {
    local_->DropState(prompt, n_tokens);
  }
  Result<void> SaveManifest(const BlockChain& prompt, const KvSpec& spec,
                            const std::string& preview) override {
    return local_->SaveManifest(prompt, spec, preview);
  }
  std::optional<std::uint64_t> BytesInUse() const override {
    return local_->BytesInUse();
  }
  Result<void> Drain(double seconds_max) override;
  void GiveUp() override;

 private:
  // Appends the blocks that are missing here and are there; what ended it.
  struct Fetched {
    std::size_t n_taken = 0;
    bool found_bad = false;  // one was there and did not count
    std::string reason;
  };
  Fetched AppendFetched(const BlockChain& prompt, const KvSpec& spec,
                        Deadline deadline, StoreMatch& match);
  // The block in `file`, verified; and on its way into the directory.
  Result<StoredBlock> Take(const std::string& file, const BlockChain& prompt,
                           std::size_t index, const KvSpec& spec);
  void Keep(std::function<Result<void>()> job, std::size_t bytes);
  // Of a spec with states: the newest ones there, if they are newer than those
  // here; into the directory, or where it has no room into the match.
  void FetchState(const BlockChain& prompt, const KvSpec& spec,
                  Deadline deadline, StoreMatch& match);
  Result<void> TakeState(const std::string& file, const BlockChain& prompt,
                         std::size_t n_tokens, const KvSpec& spec,
                         StoreMatch& match);

  std::unique_ptr<DirStore> local_;
  std::shared_ptr<const Vault> vault_;       // null: not encrypted
  std::shared_ptr<const Vault> remote_key_;  // null: no MACs
  std::string name_;
  RemoteTier remote_;
  SaveQueue keeping_;  // last: it uses what stands before
};

}  // namespace hearth
