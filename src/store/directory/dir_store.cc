// Opening, and the frame of a lookup. What is found: dir_store_find.cc.
#include "store/directory/dir_store.h"

#include <algorithm>
#include <utility>

#include "base/start_thread.h"
#include "store/directory/catalog.h"
#include "store/directory/layout.h"
#include "store/directory/root.h"
#include "store/remote/tiered_store.h"

namespace hearth {

DirStore::DirStore(std::string root, const StoreOptions& options)
    : root_(std::move(root)),
      options_(options),
      ops_(options.file_ops ? *options.file_ops : FileOps::System()) {
  limits_ = LimitsOf(options);
}

SpaceLimits LimitsOf(const StoreOptions& options) {
  SpaceLimits limits;
  limits.disk_budget_bytes = options.disk_budget_bytes;
  limits.free_space_reserve_bytes = options.free_space_reserve_bytes;
  limits.eviction.half_life_s = std::max(1.0, options.eviction_half_life_s);
  limits.lock_wait = options.lock_wait;
  return limits;
}

Result<std::unique_ptr<DirStore>> DirStore::Open(const std::string& root,
                                                 const StoreOptions& options) {
  std::unique_ptr<DirStore> store(new DirStore(root, options));
  HEARTH_TRY(PrepareRoot(store->ops_, root));
  if (!options.tidy_in_background) {
    store->Tidy();
    return store;
  }
  // No thread to spare: another launch tidies.
  store->tidying_ = TryStartThread([raw = store.get()] { raw->Tidy(); });
  return store;
}

DirStore::~DirStore() {
  stop_ = true;  // nobody waits for tidying
  if (tidying_.joinable()) tidying_.join();
}

void DirStore::Tidy() const {
  const auto root = Root();
  if (!root.ok()) return;
  SweepTemporaries(*root);
  if (limits_.disk_budget_bytes == 0 && limits_.free_space_reserve_bytes == 0) {
    return;
  }
  auto lock = SpaceLock::Take(*root, limits_, &stop_);
  if (lock.ok()) (void)lock->MakeRoom(*root, 0, limits_, {}, /*recount=*/true);
}

std::optional<std::uint64_t> DirStore::BytesInUse() const {
  const auto root = Root();
  if (!root.ok()) return std::nullopt;
  auto lock = SpaceLock::Take(*root, limits_, &stop_);
  if (lock.ok()) {
    const auto total = lock->Total(*root);
    if (total.ok()) return *total;
  }
  // A store that may only be read.
  const auto catalog = ScanStore(*root);
  if (!catalog.ok()) return std::nullopt;
  return catalog->total_bytes;
}

Result<BudgetedWriter> DirStore::Writer() const {
  auto root = Root();
  if (!root.ok() && root.error().code == Code::kNotFound) {
    HEARTH_TRY(PrepareRoot(ops_, root_));  // somebody deleted the whole store
    root = Root();
  }
  if (!root.ok()) return root.error();
  return BudgetedWriter(std::move(*root), limits_, &stop_);
}

Result<std::unique_ptr<KvStore>> KvStore::Open(const std::string& root,
                                               const StoreOptions& options) {
  if (options.remote_url.empty()) {
    HEARTH_ASSIGN(std::unique_ptr<KvStore> store,
                  DirStore::Open(root, options));
    return store;
  }
  HEARTH_ASSIGN(RemoteUrl url, ParseRemoteUrl(options.remote_url));
  if (options.vault == nullptr && options.remote_key == nullptr &&
      !options.remote_trusted) {
    return {Code::kInvalidArgument,
            "shared cache " + url.Name() +
                ": whoever can write to it can plant keys and values that "
                "change answers. Give a key that its machines share, or say "
                "that it is trusted"};
  }
  HEARTH_ASSIGN(std::unique_ptr<DirStore> local, DirStore::Open(root, options));
  return std::unique_ptr<KvStore>(
      std::make_unique<TieredStore>(std::move(local), std::move(url), options));
}

// --- Lookup ------------------------------------------------------------------

StoreMatch DirStore::Lookup(const BlockChain& prompt, const KvSpec& spec,
                            std::size_t first_block) {
  StoreMatch match;
  match.first_token = static_cast<int>(prompt.BeginOf(first_block));
  AppendFullBlocks(prompt, spec, match);
  AppendTail(prompt, spec, match);
  AttachState(prompt, spec, match);
  return match;
}

std::string DirStore::KeyNote(const Directory& root) const {
  constexpr int kFilesMax = 4;
  const auto prompts = root.Sub(kPromptsName);
  const auto names = prompts.ok() ? prompts->Names() : prompts.error();
  if (!names.ok()) return "";
  int n_left = kFilesMax;
  for (const std::string& name : *names) {
    if (!name.ends_with(kPromptSuffix)) continue;
    if (n_left-- == 0) break;
    const auto start = prompts->ReadStart(name, kImageAlign);
    if (!start.ok()) continue;
    const auto usable = CheckKey(*start, options_.vault.get(), name);
    if (!usable.ok()) return "; " + usable.error().message;
  }
  return "";
}

}  // namespace hearth
