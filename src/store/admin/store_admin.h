// What `hearth cache` does, as plain data: nothing here prints or formats.
// Works on a store that other processes use meanwhile.
//
// Names  a stored prompt is named by its stem ("<model>-<12 hex>"), or by any
//        beginning of the stem or of its 12 hex digits that only one prompt
//        has.
// Errors kNotFound: no such prompt. kInvalidArgument: the name fits several.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/files/vault.h"
#include "base/hash.h"
#include "cache/block_chain.h"
#include "cache/kv_spec.h"
#include "hearth/cache_report.h"
#include "hearth/cache_tree.h"
#include "hearth/result.h"
#include "store/budget/eviction.h"
#include "store/budget/space.h"

namespace hearth {

struct WipeFilter {
  std::string model_name;  // empty: all of the store
};

// Why a prompt would not be found whole.
struct WhyReport {
  std::uint64_t n_tokens = 0;         // asked for
  std::uint64_t n_tokens_stored = 0;  // that a lookup would find
  std::string miss_reason;            // of the lookup; empty when none
  // The stored prompt that shares the most leading tokens; empty: none stored.
  std::string nearest_stem;
  std::uint64_t n_tokens_common = 0;
  // Key fields in which the nearest differs: "model", "kv format",
  // "name space". Its blocks cannot be used while this is not empty.
  std::vector<std::string> key_differences;
  // First token where they part; nothing where one has ended.
  std::optional<std::int32_t> asked_token, stored_token;
  // Tokens of the nearest, for a text around the place.
  std::vector<std::int32_t> nearest_tokens;
};

class StoreAdmin {
 public:
  // An existing store; kNotFound when there is none. Entries that are encrypted
  // under another key than `vault`'s are counted and otherwise left alone.
  static Result<StoreAdmin> Open(const std::string& root,
                                 FileOps* file_ops = nullptr,
                                 std::shared_ptr<const Vault> vault = nullptr);

  // Newest use first. Manifests that cannot be read are left to Verify.
  Result<std::vector<PromptInfo>> List() const;
  // Stored prompts that cannot be read without another key.
  Result<std::uint64_t> CountLocked() const;
  Result<PromptDetails> Show(const std::string& name) const;
  // The note beside the manifest of this stem; empty where none can be read.
  std::string Note(const std::string& stem) const;
  Result<StoreStats> Stats() const;
  Result<PromptTree> Tree() const;

  // Reads every file whole. Files that cannot be right, and whatever is no file
  // where one belongs, are moved to quarantine when `set_aside`. Of blocks that
  // a shared cache knows the MAC counts, too, when its key is given.
  // `progress`: bytes done, of all.
  using VerifyProgress = std::function<void(std::uint64_t, std::uint64_t)>;
  Result<VerifyReport> Verify(bool set_aside, const Vault* remote_key = nullptr,
                              const VerifyProgress& progress = nullptr) const;

  // A pinned prompt and its blocks are not evicted. Gives the stem.
  Result<std::string> Pin(const std::string& name) const;
  Result<std::string> Unpin(const std::string& name) const;

  // Deletes leftovers, what is no file, and prompts whose chain is broken, then
  // enforces limits.
  Result<GcReport> Gc(const SpaceLimits& limits) const;
  // Deletes one prompt, and its blocks that no other has. kInvalidArgument for
  // a pinned one.
  Result<GcReport> Evict(const std::string& name) const;
  // Deletes the stored prompts and blocks that the filter names, pinned ones
  // too; without a filter everything in the store's folders, whatever its name
  // or kind, and blocks that were moved to the root. Waits for no other
  // process.
  Result<GcReport> Wipe(const WipeFilter& filter) const;

  Result<WhyReport> Why(const KvIdentity& identity, const KvSpec& spec,
                        std::span<const std::int32_t> tokens) const;

  // The prompt as one self-contained file; as WriteBundle for what it replaces.
  Result<void> Export(const std::string& name, const std::string& path) const;
  // Verifies the bundle and puts its blocks and manifest into the store, where
  // they replace damaged ones. Gives the stem.
  Result<std::string> Import(const std::string& path,
                             const SpaceLimits& limits) const;

 private:
  StoreAdmin(std::string root, FileOps* ops, std::shared_ptr<const Vault> vault)
      : root_(std::move(root)), ops_(ops), vault_(std::move(vault)) {}
  Result<Directory> Root() const {
    return Directory::Open(*ops_, root_, vault_.get());
  }
  Result<void> WipeModel(
      const Directory& root, const std::string& model_name,
      const std::function<void(const CatalogFile&)>& remove) const;
  Result<std::string> Resolve(const Directory& root,
                              const std::string& name) const;

  std::string root_;
  FileOps* ops_;
  std::shared_ptr<const Vault> vault_;
};

}  // namespace hearth
