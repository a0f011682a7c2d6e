// The persistent store: a directory of sealed blocks and prompt manifests that
// anyone may look into, copy and delete. No daemon, no index that can be lost.
// Layout and formats: docs/formats/block.md, docs/formats/manifest.md.
//
// Threads  every call may be made from any thread, and any number of processes
//          may share a directory: there is no lock on the read path.
// Errors   nothing here fails an answer: a defect of a stored file is a shorter
//          match with a reason, and a failed save is an Error to report once.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "cache/block_chain.h"
#include "cache/kv_spec.h"
#include "hearth/miss_kind.h"
#include "hearth/result.h"

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
  // of this process: decrypted, joined from pieces, cut, or with no room on the
  // disk.
  bool is_mapped = false;
};

// All states at one position, as found: verified, read-only.
struct StoredState {
  int n_tokens = 0;  // of the whole prefix that they are behind
  ByteSpan payload;  // StateLayout(spec.states), 64-byte aligned or better
  std::shared_ptr<const void> owner;
  bool is_mapped = false;  // as StoredBlock's
};

struct StoreMatch {
  int first_token = 0;              // that blocks[0] begins with
  std::vector<StoredBlock> blocks;  // from there on, without a gap
  int n_tokens = 0;                 // their sum
  // Of a spec with states: those at end(), where the match ends for their sake.
  std::optional<StoredState> state;
  int n_tokens_in_blocks =
      0;                      // of such a spec: how far blocks go from there on
  int n_tokens_remote = 0;    // of them: fetched from a shared server
  const char* tier = "disk";  // "file", or "remote" when some are
  // Why the match is not longer; empty when it goes to the prompt's end. One
  // line; names the file when a defect ended the match.
  std::string miss_reason;
  MissKind miss_kind = MissKind::kNotStored;  // of a miss_reason
  // Files that were found damaged or foreign and set aside, one line each.
  std::vector<std::string> warnings;

  int end() const { return first_token + n_tokens; }
};

struct StoreOptions {
  // False leaves out the checksums of the payload. Headers, ids and token ids
  // are compared always.
  bool verify = true;
  // Bytes that all files of the store may take together; 0: no limit. Held at
  // every instant, unfinished files included, over all processes that state it.
  // What does not fit although everything else is pinned or in use is refused.
  std::uint64_t disk_budget_bytes = 0;
  // Bytes of the disk that saving leaves free for others.
  std::uint64_t free_space_reserve_bytes = 0;
  // How long a save waits for another process that makes room. Then it is
  // refused, with the name of that process.
  std::chrono::milliseconds lock_wait{2000};
  // How long a rest halves an entry's worth when room is needed.
  double eviction_half_life_s = 24 * 3600;
  // Opening removes what dead writers left and enforces the budget on a thread
  // of its own; false does it before Open returns.
  bool tidy_in_background = true;
  // A server that several machines share (remote/remote_url.h); empty: none.
  // `remote_deadline_ms`: what one lookup may wait for it. `remote_pause_s`:
  // how long it is left alone after a failure; twice as long after each further
  // one, up to five minutes.
  // What comes from it counts only with a MAC under `remote_key`, or encrypted
  // under `vault`; without either the server is refused, unless
  // `remote_trusted` says that whoever can write to it may.
  std::string remote_url;
  std::shared_ptr<const Vault> remote_key;
  bool remote_trusted = false;
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

  // The same blocks in one file, which is written when whole prompts are saved,
  // and now and then while a long one still grows. kInvalidArgument when the
  // path names what is not to be written over: another kind of file, a
  // directory, or a name in a directory that does not exist.
  static Result<std::unique_ptr<KvStore>> OpenFile(
      const std::string& path, const StoreOptions& options = {});

  // The longest stored part of the prompt from block `first_block` on: full
  // blocks by their ids, then the longest partial one; its last block may be
  // the beginning of one that goes on otherwise. Verifies all that it returns.
  // Of a spec with states it ends where the newest stored ones are, in front of
  // the prompt's last token at most; without any it is empty.
  // REQUIRES, here and below: the prompt's blocks have spec.block_tokens.
  virtual StoreMatch Lookup(const BlockChain& prompt, const KvSpec& spec,
                            std::size_t first_block = 0) = 0;

  // Up to which token the blocks from `first_block` on are stored, by name
  // alone: nothing is read. A lookup may find less, or some of what follows.
  virtual int CountStored(const BlockChain& prompt,
                          std::size_t first_block = 0) = 0;

  // Token ids of stored prompts of this identity, last used first, `n_max` at
  // most. Those whose first ids `wanted` declines are not read further.
  using WantedPrompt = std::function<bool(std::span<const std::int32_t>)>;
  virtual std::vector<std::vector<std::int32_t>> RecentPrompts(
      const KvIdentity& identity, std::size_t n_max,
      const WantedPrompt& wanted) = 0;

  // Saves the prompt's blocks from `first_block` on, one for each payload
  // (KvLayout of the spec and the block's tokens). Durable when it returns.
  // Fine when a block exists already; of one whose first tokens are stored only
  // the others are written, and a few tokens more than are stored wait for the
  // next save (docs/decisions/0031-small-growth-waits.md). On an error those
  // before it are saved.
  virtual Result<void> SaveBlocks(const BlockChain& prompt, const KvSpec& spec,
                                  std::size_t first_block,
                                  std::span<const ByteSpan> payloads) = 0;

  // Saves the states behind the prompt's first `n_tokens`, whose blocks have
  // been saved; payload: StateLayout(spec.states). Durable when it returns.
  // Fine when they are stored already.
  virtual Result<void> SaveState(const BlockChain& prompt, const KvSpec& spec,
                                 std::size_t n_tokens, ByteSpan payload) = 0;

  // Removes the file of such states, which others do for now; when it cannot,
  // it stays until its room is needed.
  virtual void DropState(const BlockChain& prompt, std::size_t n_tokens) = 0;

  // The manifest of a whole prompt, whose blocks and states have been saved,
  // and the readable sidecar beside it. `preview` is stored only when not
  // empty.
  virtual Result<void> SaveManifest(const BlockChain& prompt,
                                    const KvSpec& spec,
                                    const std::string& preview) = 0;

  // Bytes that the store's files take, as its budget counts them: what somebody
  // deleted by hand is noticed when room is made. None where nobody counts.
  virtual std::optional<std::uint64_t> BytesInUse() const {
    return std::nullopt;
  }

  // Waits until what was saved is also where else it goes to, `seconds_max` at
  // most; an Error says what did not get there.
  virtual Result<void> Drain(double) { return {}; }

  // The program must end: saves that run or come are cancelled as soon as the
  // system lets go of them.
  virtual void GiveUp() = 0;
};

}  // namespace hearth
