// KvStore over a directory. See kv_store.h for the contract and
// docs/formats/store.md for the layout.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "store/block_image.h"
#include "store/directory.h"
#include "store/kv_store.h"
#include "store/space.h"
#include "store/vault.h"

namespace hearth {

// The last use of the block at `depth` of a chain that is used now: a little
// older with each step, so that of equally old blocks the deepest go first.
constexpr std::int64_t StampAt(std::int64_t now_ns, std::size_t depth) {
  return now_ns - static_cast<std::int64_t>(depth) * 1000;
}

class DirStore : public KvStore {
 public:
  static Result<std::unique_ptr<DirStore>> Open(const std::string& root,
                                                const StoreOptions& options);
  ~DirStore() override;

  StoreMatch Lookup(const KvIdentity& identity, const KvSpec& spec,
                    std::span<const std::int32_t> tokens) override;
  int CountStored(const KvIdentity& identity, const KvSpec& spec,
                  std::span<const std::int32_t> tokens) override;
  std::vector<std::vector<std::int32_t>> RecentPrompts(
      const KvIdentity& identity, std::size_t n_max,
      const WantedPrompt& wanted) override;
  Result<void> SaveBlock(const KvIdentity& identity, const KvSpec& spec,
                         const BlockToSave& block) override;
  Result<void> SaveBlocks(const KvIdentity& identity, const KvSpec& spec,
                          std::span<const BlockToSave> blocks) override;
  Result<void> SaveManifest(const KvIdentity& identity, const KvSpec& spec,
                            std::span<const std::int32_t> tokens,
                            const BlockToSave* tail,
                            const std::string& preview) override;

 private:
  struct Search;  // one Lookup in progress

  DirStore(std::string root, const StoreOptions& options);

  Result<Directory> Root() const {
    return Directory::Open(ops_, root_, options_.vault.get());
  }
  Result<Directory> RootToWrite() const;
  void Tidy() const;

  void FindFullBlocks(Search& search, const Directory& root);
  void FindTail(Search& search, const Directory& root);
  Result<void> SaveSome(const KvIdentity& identity, const KvSpec& spec,
                        std::span<const BlockToSave> blocks);
  bool HoldsBlock(const Directory& folder, const BlockQuery& query,
                  std::uint64_t payload_bytes) const;
  // The plain bytes of a file whose name came from an id. With a vault the name
  // came from the key, so that another file there is no other key's, but a
  // defect.
  Result<FileBytes> ReadMapped(MappedFile mapped) const;
  // What a whole miss may be due to: other keys than those of the entries.
  std::string KeyNote(const Directory& root) const;
  // A block's file on its way into a match: mapped, then verified; or why not.
  // No folder: it is the folder that could not be opened.
  struct OpenedBlock {
    std::optional<Directory> folder;
    std::optional<MappedFile> file;
    std::optional<StoredBlock> block;
    Error error = {};
  };
  OpenedBlock MapBlock(const Directory& blocks, const BlockQuery& query) const;
  // May run for several blocks at once.
  void VerifyBlock(const Search& search, const BlockQuery& query,
                   OpenedBlock& opened) const;
  // False when the search ends here.
  bool TakeBlock(Search& search, const BlockQuery& query, OpenedBlock opened);
  Result<StoredBlock> OpenTail(const Directory& prompts, const Search& search,
                               const std::string& name,
                               const BlockQuery& query) const;
  // Moves a file that cannot be right out of the way, so that it cannot fail
  // twice. Best effort: a read-only directory just keeps it.
  void SetAside(const Directory& folder, const std::string& name,
                const Error& error, std::vector<std::string>& warnings) const;

  // Remembers the chain that a caller works on, whose blocks must not be
  // evicted to make room for its next one.
  void Remember(const Digest& id, const Digest& parent);
  void StampChain(const Directory& root, std::span<const Digest> chain) const;
  void ProtectChain(Digest id, Protection& protection) const;

  const std::string root_;
  const StoreOptions options_;
  FileOps& ops_;
  SpaceLimits limits_;
  mutable std::mutex mutex_;  // guards parents_
  std::unordered_map<Digest, Digest> parents_;
  std::thread tidying_;
};

}  // namespace hearth
