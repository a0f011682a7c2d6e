// KvStore over a directory. See kv_store.h for the contract and
// docs/formats/store.md for the layout.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "store/budget/space.h"
#include "store/files/directory.h"
#include "store/format/block_image.h"
#include "store/format/prompt_file.h"
#include "store/format/vault.h"
#include "store/kv_store.h"

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
                            const std::string& preview) override;
  Result<void> Drain(double) override { return {}; }

  // A block that came from elsewhere: its file is written and mapped, but has
  // no name and is not durable before Keep. Without Keep it leaves nothing.
  struct Arrival {
    StoredBlock block;
    std::function<Result<void>()> Keep;
  };
  // `image`: a whole block's, verified. Errors as SaveBlock's.
  Result<Arrival> Receive(const BlockQuery& query, const KvSpec& spec,
                          ByteSpan image);

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
  // Where a block's images are: one that holds all of it, or pieces in order.
  struct Place {
    Digest id;
    int end = 0;  // tokens of the block up to here
  };
  // The images that hold the block, as far as their headers tell; none when it
  // is not stored whole. Remembers them.
  std::vector<Place> PlacesOf(const Directory& blocks, BlockQuery query);
  // The most leading tokens of the block, fewer than all, that are stored and
  // that a piece may follow; 0 when there are none.
  int StoredStart(const Directory& blocks, const KvSpec& spec,
                  const BlockQuery& query);
  // The plain bytes of a file whose name came from an id. With a vault the name
  // came from the key, so that another file there is no other key's, but a
  // defect.
  Result<FileBytes> ReadMapped(MappedFile mapped) const;
  // What a whole miss may be due to: other keys than those of the entries.
  std::string KeyNote(const Directory& root) const;
  // One file of a block, verified.
  struct OpenedImage {
    Directory folder;
    Digest id;
    int end = 0;  // tokens of the block up to here
    OpenImage image;
    std::shared_ptr<const void> owner;
  };
  // A block on its way into a match: its file is mapped, then it is verified
  // with those of the pieces before it; or why not. `at`, `folder`, `file`: the
  // file in hand, or the one that has the error; no folder: that could not be
  // opened.
  struct OpenedBlock {
    Digest at;
    std::optional<Directory> folder;
    std::optional<MappedFile> file;
    Error error = {};
    std::vector<OpenedImage> images;  // in order, when `block` is there
    std::optional<StoredBlock> block;
  };
  OpenedBlock MapBlock(const Directory& blocks, const BlockQuery& query) const;
  // May run for several blocks at once.
  void VerifyBlock(const Directory& blocks, const Search& search,
                   BlockQuery query, OpenedBlock& opened) const;
  void JoinImages(const KvSpec& spec, OpenedBlock& opened) const;
  // False when the search ends here.
  bool TakeBlock(Search& search, const BlockQuery& query, OpenedBlock opened);
  // Moves a file that cannot be right out of the way, so that it cannot fail
  // twice. Best effort: a read-only directory just keeps it.
  void SetAside(const Directory& folder, const std::string& name,
                const Error& error, std::vector<std::string>& warnings) const;

  // Remembers the chain that a caller works on, whose images must not be
  // evicted to make room for its next one: `id` holds a block's tokens from
  // `first` on, behind the image `before`.
  struct Link {
    Digest before;
    int first = 0;
  };
  void Remember(const Digest& id, const Link& link);
  // Where a block of n_tokens is, as this process knows it; none when it does
  // not.
  std::vector<Place> RememberedPlaces(Digest id, int n_tokens) const;
  void StampChain(const Directory& blocks, const PromptHeader& header) const;
  void ProtectChain(Digest id, Protection& protection) const;

  const std::string root_;
  const StoreOptions options_;
  FileOps& ops_;
  SpaceLimits limits_;
  mutable std::mutex mutex_;  // guards links_
  std::unordered_map<Digest, Link> links_;
  std::thread tidying_;
};

}  // namespace hearth
