// KvStore over a directory. See kv_store.h for the contract and
// docs/formats/store.md for the layout.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/files/directory.h"
#include "base/files/vault.h"
#include "base/mutex.h"
#include "base/thread_pool.h"
#include "store/budget/budgeted_writer.h"
#include "store/format/block_image.h"
#include "store/format/prompt_file.h"
#include "store/format/state_image.h"
#include "store/kv_store.h"

namespace hearth {

// The last use of the block at `depth` of a chain that is used now: a little
// older with each step, so that of equally old blocks the deepest go first.
constexpr std::int64_t StampAt(std::int64_t now_ns, std::size_t depth) {
  return now_ns - static_cast<std::int64_t>(depth) * 1000;
}

SpaceLimits LimitsOf(const StoreOptions& options);

class DirStore : public KvStore {
 public:
  static Result<std::unique_ptr<DirStore>> Open(const std::string& root,
                                                const StoreOptions& options);
  ~DirStore() override;

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
  std::optional<std::uint64_t> BytesInUse() const override;
  void GiveUp() override { stop_ = true; }

  // --- Lookup in parts, for a store that has more than this directory --------
  // Appends the full blocks that follow the match here, up to the first that is
  // missing; then miss_reason says so.
  void AppendFullBlocks(const BlockChain& prompt, const KvSpec& spec,
                        StoreMatch& match);
  // Appends what is here of the next block, and ends the match.
  void AppendTail(const BlockChain& prompt, const KvSpec& spec,
                  StoreMatch& match);
  bool HasBlock(const Digest& id) const;
  // Behind how many of the prompt's tokens, n_max at most, the newest states
  // are that are here, by name alone; 0: none.
  int NewestState(const BlockChain& prompt, int n_max) const;
  // Of a spec with states: ends the match where the newest ones are that are
  // here, or at the match's own, if these are newer.
  void AttachState(const BlockChain& prompt, const KvSpec& spec,
                   StoreMatch& match);

  // A block that came from elsewhere: its file is written and mapped, but has
  // no name and is not durable before Keep. Without Keep it leaves nothing.
  struct Arrival {
    StoredBlock block;
    std::function<Result<void>()> Keep;
  };
  // `image`: a whole block's, verified. Errors as SaveBlocks'.
  Result<Arrival> Receive(const BlockQuery& query, const KvSpec& spec,
                          ByteSpan image);

 private:
  DirStore(std::string root, const StoreOptions& options);

  Result<Directory> Root() const {
    return Directory::Open(ops_, root_, options_.vault.get());
  }
  Result<BudgetedWriter> Writer() const;
  void Tidy() const;

  // Where a block's images are: one that holds all of it, or pieces in order.
  struct Place {
    Digest id;
    int end = 0;  // tokens of the block up to here
  };
  // The images that hold the block, as far as their headers tell; none when it
  // is not stored whole. Remembers them.
  std::vector<Place> PlacesOf(const Directory& blocks, BlockQuery query);
  // The most leading tokens of the block, fewer than all, that are stored and
  // that a piece may follow. `end` 0: none.
  struct Start {
    int end = 0;
    int last_piece = 0;  // tokens of the last image
  };
  Start StoredStart(const Directory& blocks, const KvSpec& spec,
                    const BlockQuery& query);
  // Whether the tokens that the last block has beyond `start` wait.
  static bool Waits(const KvSpec& spec, const BlockQuery& query,
                    const Start& start);
  PromptHeader ManifestOf(const BlockChain& prompt, const KvSpec& spec,
                          const Directory* blocks);
  std::size_t NamedTokens(const BlockChain& prompt, const KvSpec& spec,
                          const Directory& blocks);
  struct NewBlock;
  Result<std::optional<NewBlock>> PrepareBlock(
      const Directory& root, const KvSpec& spec, const BlockQuery& query,
      ByteSpan payload, const KvIdentity& identity, bool look_for_start,
      Protection& protection);
  Result<void> SaveSome(const BudgetedWriter& writer, const BlockChain& prompt,
                        const KvSpec& spec, std::size_t first_block,
                        std::span<const ByteSpan> payloads);

  // The plain bytes of a file whose name came from an id. With a vault the name
  // came from the key, so that another file there is no other key's, but a
  // defect.
  Result<FileBytes> ReadMapped(MappedFile mapped, const KvSpec& spec) const;
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
  void VerifyBlock(const Directory& blocks, const KvSpec& spec,
                   BlockQuery query, OpenedBlock& opened) const;
  void VerifyAll(const Directory& blocks, const KvSpec& spec,
                 std::span<const BlockQuery> queries,
                 std::vector<OpenedBlock>& opened);
  void JoinImages(const KvSpec& spec, OpenedBlock& opened) const;
  // False when the search ends here. `depth`: of the block in its chain.
  bool TakeBlock(const BlockQuery& query, std::size_t depth, OpenedBlock opened,
                 StoreMatch& match);
  // The stored partial block that is the most of `query`'s; false: none.
  bool AppendPartial(const Directory& root, const KvSpec& spec,
                     const BlockQuery& query, std::size_t depth,
                     const std::string& model_name, StoreMatch& match);
  // A stored block that begins as the one asked for and goes on otherwise.
  struct Cousin {
    BlockQuery query;
    std::vector<std::int32_t> tokens;
    int n_common = 0;
  };
  std::optional<Cousin> FindCousin(const Directory& root, const KvSpec& spec,
                                   const BlockQuery& query,
                                   std::size_t first_token,
                                   const std::string& model_name) const;
  bool AppendCousin(const Directory& root, const KvSpec& spec,
                    const Cousin& cousin, std::size_t depth, StoreMatch& match);
  void SetAsideBlock(const Directory& folder, const Digest& id,
                     const Error& error,
                     std::vector<std::string>& warnings) const;

  // One file of states, verified; else it is set aside, if it cannot be right.
  std::optional<StoredState> OpenState(
      const Directory& root, const KvSpec& spec, const StateQuery& query,
      std::vector<std::string>& warnings) const;

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
  std::atomic<bool> stop_{false};
  mutable Mutex mutex_;
  std::unordered_map<Digest, Link> links_ HEARTH_GUARDED_BY(mutex_);
  std::mutex readers_mutex_;             // held for a loop
  std::unique_ptr<ThreadPool> readers_;  // made by the first loop
  std::thread tidying_;
};

}  // namespace hearth
