// A directory in front of a shared server. Blocks that are missing here are
// fetched from there, verified like any other, written here and mapped; blocks
// that are saved here are offered there. Tails and manifests stay local.
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

  StoreMatch Lookup(const KvIdentity& identity, const KvSpec& spec,
                    std::span<const std::int32_t> tokens) override;
  int CountStored(const KvIdentity& identity, const KvSpec& spec,
                  std::span<const std::int32_t> tokens) override {
    return local_->CountStored(identity, spec, tokens);
  }
  std::vector<std::vector<std::int32_t>> RecentPrompts(
      const KvIdentity& identity, std::size_t n_max,
      const WantedPrompt& wanted) override {
    return local_->RecentPrompts(identity, n_max, wanted);
  }
  Result<void> SaveBlock(const KvIdentity& identity, const KvSpec& spec,
                         const BlockToSave& block) override {
    return SaveBlocks(identity, spec, std::span(&block, 1));
  }
  Result<void> SaveBlocks(const KvIdentity& identity, const KvSpec& spec,
                          std::span<const BlockToSave> blocks) override;
  Result<void> SaveManifest(const KvIdentity& identity, const KvSpec& spec,
                            std::span<const std::int32_t> tokens,
                            const std::string& preview) override {
    return local_->SaveManifest(identity, spec, tokens, preview);
  }
  Result<void> Drain(double seconds_max) override;

 private:
  // The block in `file`, verified; and on its way into the directory.
  Result<StoredBlock> Take(const std::string& file, const KvIdentity& identity,
                           const KvSpec& spec, const BlockQuery& query);
  void Keep(std::function<Result<void>()> job, std::size_t bytes);

  std::unique_ptr<DirStore> local_;
  std::shared_ptr<const Vault> vault_;
  std::string name_;
  RemoteTier remote_;
  SaveQueue keeping_;  // last: it uses what stands before
};

}  // namespace hearth
