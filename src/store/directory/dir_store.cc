#include "store/directory/dir_store.h"

#include <algorithm>
#include <utility>

#include "base/thread_pool.h"
#include "store/directory/layout.h"
#include "store/directory/root.h"
#include "store/format/block_pieces.h"
#include "store/format/prompt_file.h"
#include "store/remote/tiered_store.h"

namespace hearth {

struct DirStore::Search {
  const KvIdentity& identity;
  const KvSpec& spec;
  std::span<const std::int32_t> tokens;
  Digest root_id;
  Digest parent;  // id of the last block found, or root_id
  std::int64_t now_ns;
  StoreMatch match;

  std::span<const std::int32_t> rest() const {
    return tokens.subspan(static_cast<std::size_t>(match.n_tokens));
  }
  BlockQuery Query(std::span<const std::int32_t> of) const {
    return {identity.model_id,
            identity.format_id,
            root_id,
            parent,
            ChildId(parent, of),
            of};
  }
  // Of the next n blocks of `step` tokens.
  std::vector<BlockQuery> Queries(std::size_t n, std::size_t step) const {
    std::vector<BlockQuery> queries;
    Digest behind = parent;
    for (std::size_t k = 0; k < n; ++k) {
      const auto of = rest().subspan(k * step, step);
      const Digest id = ChildId(behind, of);
      queries.push_back(
          {identity.model_id, identity.format_id, root_id, behind, id, of});
      behind = id;
    }
    return queries;
  }
  // The last use of the block found next.
  std::int64_t Stamp() const { return StampAt(now_ns, match.blocks.size()); }
  void Take(StoredBlock block) {
    parent = block.id;
    match.n_tokens += block.n_tokens;
    match.blocks.push_back(std::move(block));
  }
};

namespace {

// Blocks that are opened at once, and by how many threads at most.
constexpr std::size_t kReadAhead = 16;
constexpr int kReadersMax = 8;

// Damage and foreign files are set aside; what a later version wrote, or the
// system would not let us read, stays where it is.
bool IsDefect(const Error& error) {
  return error.code == Code::kCorrupt || error.code == Code::kInvalidArgument;
}

std::string TokenRange(std::size_t first, std::size_t count) {
  return "tokens " + std::to_string(first) + ".." +
         std::to_string(first + count - 1);
}

}  // namespace

DirStore::DirStore(std::string root, const StoreOptions& options)
    : root_(std::move(root)),
      options_(options),
      ops_(options.file_ops ? *options.file_ops : FileOps::System()) {
  limits_.disk_budget_bytes = options.disk_budget_bytes;
  limits_.free_space_reserve_bytes = options.free_space_reserve_bytes;
  limits_.eviction.half_life_s = std::max(1.0, options.eviction_half_life_s);
}

Result<std::unique_ptr<DirStore>> DirStore::Open(const std::string& root,
                                                 const StoreOptions& options) {
  std::unique_ptr<DirStore> store(new DirStore(root, options));
  HEARTH_TRY(PrepareRoot(store->ops_, root));
  if (options.tidy_in_background) {
    store->tidying_ = std::thread([raw = store.get()] { raw->Tidy(); });
  } else {
    store->Tidy();
  }
  return store;
}

DirStore::~DirStore() {
  if (tidying_.joinable()) tidying_.join();
}

void DirStore::Tidy() const {
  const auto root = Root();
  if (!root.ok()) return;
  SweepTemporaries(*root);
  if (limits_.disk_budget_bytes == 0 && limits_.free_space_reserve_bytes == 0) {
    return;
  }
  auto lock = SpaceLock::Take(*root);
  if (lock.ok()) (void)lock->MakeRoom(*root, 0, limits_, {}, /*recount=*/true);
}

Result<std::unique_ptr<KvStore>> KvStore::Open(const std::string& root,
                                               const StoreOptions& options) {
  if (options.remote_url.empty()) {
    HEARTH_ASSIGN(std::unique_ptr<KvStore> store,
                  DirStore::Open(root, options));
    return store;
  }
  HEARTH_ASSIGN(RemoteUrl url, ParseRemoteUrl(options.remote_url));
  HEARTH_ASSIGN(std::unique_ptr<DirStore> local, DirStore::Open(root, options));
  return std::unique_ptr<KvStore>(
      std::make_unique<TieredStore>(std::move(local), std::move(url), options));
}

// --- Lookup ------------------------------------------------------------------

StoreMatch DirStore::Lookup(const KvIdentity& identity, const KvSpec& spec,
                            std::span<const std::int32_t> tokens) {
  const Digest root_id = RootId(identity);
  Search search{identity, spec, tokens, root_id, root_id, NowNs(), {}};
  if (tokens.empty()) return std::move(search.match);
  const auto root = Root();
  if (!root.ok()) {
    search.match.miss_reason = root.error().message;
    return std::move(search.match);
  }
  FindFullBlocks(search, *root);
  if (!search.rest().empty()) FindTail(search, *root);
  if (search.rest().empty()) {
    search.match.miss_reason.clear();
  } else if (search.match.n_tokens == 0) {
    search.match.miss_reason += KeyNote(*root);
  }
  return std::move(search.match);
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

Result<FileBytes> DirStore::ReadMapped(MappedFile mapped) const {
  auto file = ReadStored(std::move(mapped), options_.vault.get());
  if (!file.ok() && options_.vault != nullptr &&
      file.error().code == Code::kIncompatible) {
    return {Code::kCorrupt, file.error().message};
  }
  return file;
}

void DirStore::FindFullBlocks(Search& search, const Directory& root) {
  const auto step = static_cast<std::size_t>(search.spec.block_tokens);
  const auto blocks = root.Sub(kBlocksName);
  if (!blocks.ok()) {
    search.match.miss_reason = blocks.error().code == Code::kNotFound
                                   ? "the store is empty"
                                   : blocks.error().message;
    return;
  }
  std::optional<ThreadPool> readers;
  while (search.rest().size() >= step) {
    // Reading and verifying costs more than all the rest of a hot start: as
    // many at once as there are processors, once a first hit shows that there
    // is something to find.
    const std::size_t n =
        search.match.blocks.empty()
            ? 1
            : std::min(search.rest().size() / step, kReadAhead);
    const std::vector<BlockQuery> queries = search.Queries(n, step);
    // Mapping takes the address space's lock, so only one thread does it; the
    // pages come in while the others verify theirs.
    std::vector<OpenedBlock> opened;
    while (opened.size() < n) {
      opened.push_back(MapBlock(*blocks, queries[opened.size()]));
      if (!opened.back().file.has_value()) break;
    }
    const auto verify = [&](std::int64_t at, int) {
      const auto k = static_cast<std::size_t>(at);
      VerifyBlock(*blocks, search, queries[k], opened[k]);
    };
    if (opened.size() == 1) {
      verify(0, 0);
    } else {
      if (!readers.has_value()) {
        readers.emplace(std::min(AvailableCpus(), kReadersMax));
      }
      readers->ParallelFor(static_cast<std::int64_t>(opened.size()), verify);
    }
    for (std::size_t k = 0; k < opened.size(); ++k) {
      if (!TakeBlock(search, queries[k], std::move(opened[k]))) return;
    }
  }
}

DirStore::OpenedBlock DirStore::MapBlock(const Directory& blocks,
                                         const BlockQuery& query) const {
  OpenedBlock opened;
  opened.at = query.block_id;
  auto folder = blocks.Sub(BlockFolder(query.block_id));
  if (!folder.ok()) {
    opened.error = folder.error();
    return opened;
  }
  auto file = folder->Map(BlockName(query.block_id));
  opened.folder = std::move(*folder);
  if (file.ok()) {
    opened.file = std::move(*file);
  } else {
    opened.error = file.error();
  }
  return opened;
}

// From the block's last image back to its first.
void DirStore::VerifyBlock(const Directory& blocks, const Search& search,
                           BlockQuery query, OpenedBlock& opened) const {
  while (opened.file.has_value()) {
    const std::string path = opened.file->path();
    auto file = ReadMapped(std::move(*opened.file));
    opened.file.reset();
    const auto image = file.ok() ? OpenBlockImage(file->bytes, search.spec,
                                                  query, options_.verify, path)
                                 : Result<OpenImage>(file.error());
    if (!image.ok()) {
      opened.error = image.error();
      return;
    }
    opened.images.push_back({std::move(*opened.folder), query.block_id,
                             static_cast<int>(query.tokens.size()), *image,
                             std::move(file->owner)});
    opened.folder.reset();
    if (image->first_token == 0) return JoinImages(search.spec, opened);
    query.tokens =
        query.tokens.first(static_cast<std::size_t>(image->first_token));
    query.block_id = ChildId(query.parent_id, query.tokens);
    OpenedBlock before = MapBlock(blocks, query);
    opened.at = before.at;
    opened.folder = std::move(before.folder);
    opened.file = std::move(before.file);
    opened.error = std::move(before.error);
  }
}

void DirStore::JoinImages(const KvSpec& spec, OpenedBlock& opened) const {
  std::reverse(opened.images.begin(), opened.images.end());
  const OpenedImage& last = opened.images.back();
  StoredBlock block{last.id, last.end, last.image.payload, last.owner,
                    options_.vault == nullptr};
  if (opened.images.size() > 1) {
    std::vector<Piece> pieces;
    for (const OpenedImage& image : opened.images) {
      pieces.push_back(
          {image.image.payload, image.image.first_token, image.end});
    }
    auto joined = JoinPieces(spec, pieces);
    if (!joined.ok()) {
      opened.error = joined.error();
      return;
    }
    block.payload = joined->bytes;
    block.owner = std::move(joined->owner);
    block.is_mapped = false;
  }
  opened.block = std::move(block);
}

bool DirStore::TakeBlock(Search& search, const BlockQuery& query,
                         OpenedBlock opened) {
  if (!opened.block.has_value()) {
    const std::string where = TokenRange(
        static_cast<std::size_t>(search.match.n_tokens), query.tokens.size());
    const Error& error = opened.error;
    if (error.code == Code::kNotFound) {
      search.match.miss_reason = where + " are not stored";
    } else if (!opened.folder.has_value()) {
      search.match.miss_reason = error.message;
      search.match.warnings.push_back(error.message);
    } else {
      search.match.miss_reason = where + ": " + error.message;
      if (IsDefect(error)) {
        SetAside(*opened.folder, BlockName(opened.at), error,
                 search.match.warnings);
      }
    }
    return false;
  }
  Digest before = query.parent_id;
  for (const OpenedImage& image : opened.images) {
    // Without write permission there is just no stamp.
    (void)image.folder.Touch(BlockName(image.id), search.Stamp());
    Remember(image.id, {before, image.image.first_token});
    before = image.id;
  }
  search.Take(std::move(*opened.block));
  return true;
}

// A block's file is named after its tokens. So every length that a stored tail
// could have is one id to compute and one name to look for; no directory is
// read.
void DirStore::FindTail(Search& search, const Directory& root) {
  const auto blocks = root.Sub(kBlocksName);
  if (!blocks.ok()) return;
  const auto rest = search.rest();
  const auto longest = std::min(
      rest.size(), static_cast<std::size_t>(search.spec.block_tokens) - 1);
  std::string reason = search.match.miss_reason;
  for (std::size_t n = longest; n >= 1; --n) {
    const BlockQuery query = search.Query(rest.first(n));
    const auto folder = blocks->Sub(BlockFolder(query.block_id));
    if (!folder.ok() || !folder->Exists(BlockName(query.block_id))) continue;
    OpenedBlock opened = MapBlock(*blocks, query);
    VerifyBlock(*blocks, search, query, opened);
    if (!opened.block.has_value() && opened.error.code == Code::kNotFound) {
      continue;  // what it stands behind is gone
    }
    const std::int64_t stamp = search.Stamp();
    if (TakeBlock(search, query, std::move(opened))) {
      const auto prompts = root.Sub(kPromptsName);
      if (prompts.ok()) {
        (void)prompts->Touch(
            PromptStem(search.identity.model_name, query.block_id) +
                std::string(kPromptSuffix),
            stamp);
      }
      if (!search.rest().empty()) {
        reason = TokenRange(static_cast<std::size_t>(search.match.n_tokens),
                            search.rest().size()) +
                 " are not stored";
      }
      break;
    }
    reason = search.match.miss_reason;
  }
  if (reason.empty()) {
    reason = TokenRange(static_cast<std::size_t>(search.match.n_tokens),
                        rest.size()) +
             " are not stored";
  }
  search.match.miss_reason = std::move(reason);
}

void DirStore::SetAside(const Directory& folder, const std::string& name,
                        const Error& error,
                        std::vector<std::string>& warnings) const {
  bool moved = false;
  const auto root = Root();
  if (root.ok()) {
    const auto quarantine = root->MakeSub(kQuarantineName);
    const auto entry = folder.Stat(name);
    moved = quarantine.ok() && entry.ok() &&
            (folder.MoveTo(name, *quarantine, name).ok() ||
             folder
                 .MoveTo(name, *quarantine,
                         name + "-" + std::to_string(entry->inode))
                 .ok());
  }
  warnings.push_back(error.message +
                     (moved ? "; moved to quarantine" : "; ignored"));
}

}  // namespace hearth
