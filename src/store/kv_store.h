// The persistent store: a directory of sealed blocks and prompt manifests that
// anyone may look into, copy and delete. No daemon, no index that can be lost.
// Layout and formats: docs/formats/block.md, docs/formats/manifest.md.
//
// Threads  every call may be made from any thread, and any number of processes
//          may share a directory: there is no lock on the read path.
// Errors   nothing here fails an answer: a defect of a stored file is a shorter
//          match with a reason, and a failed save is an Error to report once.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "cache/kv_spec.h"
#include "hearth/result.h"
#include "store/format/kv_identity.h"

namespace hearth {

class FileOps;
class Vault;

// One block as found: verified, read-only, kept alive by `owner`.
struct StoredBlock {
  Digest id;
  int n_tokens = 0;  // block_tokens, or fewer for the tail
  ByteSpan payload;  // KvLayout(spec, n_tokens), 64-byte aligned or better
  std::shared_ptr<const void> owner;
  // Pages of a file, which processes share and the system may drop; else memory
  // of this process: decrypted, joined from pieces, or with no room on the
  // disk.
  bool is_mapped = false;
};

struct StoreMatch {
  std::vector<StoredBlock> blocks;  // from token 0 on, without a gap
  int n_tokens = 0;                 // their sum
  int n_tokens_remote = 0;          // of them: fetched from a shared server
  // Why the match is not longer; empty when it covers all that was asked for.
  // One line; names the file when a defect ended the match.
  std::string miss_reason;
  // Files that were found damaged or foreign and set aside, one line each.
  std::vector<std::string> warnings;
};

// What one block to be saved is made of.
struct BlockToSave {
  Digest parent;  // RootId or the id of the block before
  Digest id;
  std::span<const std::int32_t> tokens;
  ByteSpan payload;  // KvLayout(spec, tokens.size())
};

struct StoreOptions {
  // False leaves out the checksums of the payload (--no-verify). Headers, ids
  // and token ids are compared always.
  bool verify = true;
  // Bytes that all files of the store may take together; 0: no limit. Held at
  // every instant, unfinished files included, over all processes that state it.
  // What does not fit although everything else is pinned or in use is refused.
  std::uint64_t disk_budget_bytes = 0;
  // Bytes of the disk that saving leaves free for others.
  std::uint64_t free_space_reserve_bytes = 0;
  // How long a rest halves an entry's worth when room is needed.
  double eviction_half_life_s = 24 * 3600;
  // Opening removes what dead writers left and enforces the budget on a thread
  // of its own; false does it before Open returns.
  bool tidy_in_background = true;
  // A server that several machines share (remote/remote_url.h); empty: none.
  // `remote_deadline_ms`: what one lookup may wait for it. `remote_pause_s`:
  // how long it is left alone after a failure; twice as long after each further
  // one, up to five minutes.
  std::string remote_url;
  int remote_deadline_ms = 1000;
  int remote_pause_s = 10;
  // Encrypts everything that tells about prompts; null: plain files.
  std::shared_ptr<const Vault> vault;
  // For tests: the system calls to write with. Must outlive the store.
  FileOps* file_ops = nullptr;
};

class KvStore {
 public:
  // Makes the directory (mode 0700) when it is missing. kIncompatible when its
  // VERSION is another, kInvalidArgument when it is no directory or looks like
  // somebody else's (not empty and no VERSION), or for a URL that is none.
  // A directory that cannot be written to opens too: lookups work, saves fail.
  static Result<std::unique_ptr<KvStore>> Open(
      const std::string& root, const StoreOptions& options = {});
  virtual ~KvStore() = default;

  // The longest stored prefix of tokens: full blocks by their ids, then the
  // longest partial one. Verifies everything it returns.
  virtual StoreMatch Lookup(const KvIdentity& identity, const KvSpec& spec,
                            std::span<const std::int32_t> tokens) = 0;

  // How many leading tokens have their full blocks stored, by name alone:
  // nothing is read. A lookup may find less.
  virtual int CountStored(const KvIdentity& identity, const KvSpec& spec,
                          std::span<const std::int32_t> tokens) = 0;

  // Token ids of stored prompts of this identity, last used first, `n_max` at
  // most. Those whose first ids `wanted` declines are not read further.
  using WantedPrompt = std::function<bool(std::span<const std::int32_t>)>;
  virtual std::vector<std::vector<std::int32_t>> RecentPrompts(
      const KvIdentity& identity, std::size_t n_max,
      const WantedPrompt& wanted) = 0;

  // Durable when it returns. Fine when the block exists already. Of a block
  // whose first tokens are stored only the others are written.
  virtual Result<void> SaveBlock(const KvIdentity& identity, const KvSpec& spec,
                                 const BlockToSave& block) = 0;

  // The same for many blocks, parents first, at about half the time of one by
  // one: the disk flushes them together. Only the first is looked up for tokens
  // that are stored. On an error those before it are saved.
  virtual Result<void> SaveBlocks(const KvIdentity& identity,
                                  const KvSpec& spec,
                                  std::span<const BlockToSave> blocks) = 0;

  // The manifest of a whole prompt, whose blocks have been saved, and the
  // readable sidecar beside it. `preview` is stored only when not empty.
  virtual Result<void> SaveManifest(const KvIdentity& identity,
                                    const KvSpec& spec,
                                    std::span<const std::int32_t> tokens,
                                    const std::string& preview) = 0;

  // Waits until what was saved is also where else it goes to, `seconds_max` at
  // most; an Error says what did not get there.
  virtual Result<void> Drain(double seconds_max) = 0;
};

// --- One self-contained file (--cache-prompt) --------------------------------
// The same ids and images in a single file. Lookup as above; a missing file is
// a miss. Saving refuses (kInvalidArgument) to replace a file that is not a
// hearth prompt cache.
StoreMatch LookupBundle(const std::string& path, const KvIdentity& identity,
                        const KvSpec& spec,
                        std::span<const std::int32_t> tokens,
                        const Vault* vault = nullptr);
Result<void> SaveBundle(const std::string& path, const KvIdentity& identity,
                        const KvSpec& spec,
                        std::span<const std::int32_t> tokens,
                        std::span<const BlockToSave> blocks,
                        FileOps* file_ops = nullptr,
                        const Vault* vault = nullptr);

}  // namespace hearth
