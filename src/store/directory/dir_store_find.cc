// What a lookup finds: full blocks, then the most of the block behind them.
#include <algorithm>
#include <unordered_set>
#include <utility>

#include "store/directory/catalog.h"
#include "store/directory/dir_store.h"
#include "store/directory/layout.h"
#include "store/directory/quarantine.h"
#include "store/format/block_pieces.h"
#include "store/format/token_reader.h"

namespace hearth {
namespace {

// Blocks that are opened at once, and by how many threads at most.
constexpr std::size_t kReadAhead = 16;
constexpr int kReadersMax = 8;

// Manifests that are looked at for a block that begins alike, last used first:
// a bound on what a lookup costs.
constexpr std::size_t kManifestsToSearch = 32;

std::string NotStored(std::size_t first, std::size_t end) {
  return "tokens " + std::to_string(first) + ".." + std::to_string(end - 1) +
         " are not stored";
}

}  // namespace

bool DirStore::HasBlock(const Digest& id) const {
  const auto root = Root();
  if (!root.ok()) return false;
  const StorePath path = BlockPath(id);
  const auto folder = OpenFolder(*root, path.folder);
  return folder.ok() && folder->Exists(path.name);
}

Result<FileBytes> DirStore::ReadMapped(MappedFile mapped,
                                       const KvSpec& spec) const {
  auto file =
      ReadStored(std::move(mapped), options_.vault.get(), ImageBytesMax(spec));
  if (!file.ok() && options_.vault != nullptr &&
      file.error().code == Code::kIncompatible) {
    return {Code::kCorrupt, file.error().message};
  }
  return file;
}

void DirStore::AppendFullBlocks(const BlockChain& prompt, const KvSpec& spec,
                                StoreMatch& match) {
  const std::size_t step = prompt.block_tokens();
  const auto root = Root();
  const auto blocks = root.ok() ? root->Sub(kBlocksName) : root.error();
  if (!blocks.ok()) {
    const bool empty = root.ok() && blocks.error().code == Code::kNotFound;
    match.miss_reason = empty ? "the store is empty" : blocks.error().message;
    if (!empty) match.miss_kind = MissKind::kDefect;
    return;
  }
  std::size_t n_found = 0;
  for (auto next = static_cast<std::size_t>(match.end()) / step;
       next < prompt.n_full();
       next = static_cast<std::size_t>(match.end()) / step) {
    // Reading and verifying costs more than all the rest of a hot start: as
    // many at once as there are processors, once a first hit shows that there
    // is something to find.
    const std::size_t n =
        n_found == 0 ? 1 : std::min(prompt.n_full() - next, kReadAhead);
    std::vector<BlockQuery> queries;
    for (std::size_t k = 0; k < n; ++k) {
      queries.push_back(QueryOf(prompt, next + k));
    }
    // Mapping takes the address space's lock, so only one thread does it; the
    // pages come in while the others verify theirs.
    std::vector<OpenedBlock> opened;
    while (opened.size() < n) {
      opened.push_back(MapBlock(*blocks, queries[opened.size()]));
      if (!opened.back().file.has_value()) break;
    }
    VerifyAll(*blocks, spec, queries, opened);
    for (std::size_t k = 0; k < opened.size(); ++k) {
      if (!TakeBlock(queries[k], next + k, std::move(opened[k]), match)) return;
      ++n_found;
    }
  }
}

void DirStore::VerifyAll(const Directory& blocks, const KvSpec& spec,
                         std::span<const BlockQuery> queries,
                         std::vector<OpenedBlock>& opened) {
  const auto verify = [&](std::int64_t at, int) {
    const auto k = static_cast<std::size_t>(at);
    VerifyBlock(blocks, spec, queries[k], opened[k]);
  };
  const auto n = static_cast<std::int64_t>(opened.size());
  // Another thread's lookup has the readers: this one reads for itself.
  const std::unique_lock lock(readers_mutex_, std::try_to_lock);
  if (n == 1 || !lock.owns_lock()) {
    for (std::int64_t k = 0; k < n; ++k) verify(k, 0);
    return;
  }
  if (readers_ == nullptr) {
    readers_ =
        std::make_unique<ThreadPool>(std::min(AvailableCpus(), kReadersMax));
  }
  readers_->ParallelFor(n, verify);
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
void DirStore::VerifyBlock(const Directory& blocks, const KvSpec& spec,
                           BlockQuery query, OpenedBlock& opened) const {
  while (opened.file.has_value()) {
    const std::string path = opened.file->path();
    auto file = ReadMapped(std::move(*opened.file), spec);
    opened.file.reset();
    const auto image = file.ok() ? OpenBlockImage(file->bytes, spec, query,
                                                  options_.verify, path)
                                 : Result<OpenImage>(file.error());
    if (!image.ok()) {
      opened.error = image.error();
      return;
    }
    opened.images.push_back({std::move(*opened.folder), query.block_id,
                             static_cast<int>(query.tokens.size()), *image,
                             std::move(file->owner)});
    opened.folder.reset();
    if (image->first_token == 0) return JoinImages(spec, opened);
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

bool DirStore::TakeBlock(const BlockQuery& query, std::size_t depth,
                         OpenedBlock opened, StoreMatch& match) {
  if (!opened.block.has_value()) {
    const auto first = static_cast<std::size_t>(match.end());
    const Error& error = opened.error;
    if (error.code == Code::kNotFound) {
      match.miss_reason = NotStored(first, first + query.tokens.size());
    } else if (!opened.folder.has_value()) {
      match.miss_reason = error.message;
      match.miss_kind = MissKind::kDefect;
      match.warnings.push_back(error.message);
    } else {
      match.miss_reason = "tokens " + std::to_string(first) + ".." +
                          std::to_string(first + query.tokens.size() - 1) +
                          ": " + error.message;
      match.miss_kind = error.code == Code::kIncompatible
                            ? MissKind::kIncompatible
                            : MissKind::kDefect;
      if (IsDefect(error)) {
        SetAsideBlock(*opened.folder, opened.at, error, match.warnings);
      }
    }
    return false;
  }
  Digest before = query.parent_id;
  const std::int64_t stamp_ns = StampAt(NowNs(), depth);
  for (const OpenedImage& image : opened.images) {
    // Without write permission there is just no stamp.
    (void)image.folder.Touch(BlockName(image.id), stamp_ns);
    Remember(image.id, {before, image.image.first_token});
    before = image.id;
  }
  match.n_tokens += opened.block->n_tokens;
  match.blocks.push_back(std::move(*opened.block));
  return true;
}

void DirStore::AppendTail(const BlockChain& prompt, const KvSpec& spec,
                          StoreMatch& match) {
  const std::size_t n_all = prompt.tokens().size();
  const auto rest_begin = static_cast<std::size_t>(match.end());
  const std::size_t depth = rest_begin / prompt.block_tokens();
  const auto root = Root();
  if (root.ok() && rest_begin < n_all &&
      rest_begin % prompt.block_tokens() == 0) {
    // Of the full block that is missing, or of the partial one at the end.
    BlockQuery query = QueryOf(prompt, depth);
    AppendPartial(*root, spec, query, depth, prompt.identity().model_name,
                  match);
  }
  if (static_cast<std::size_t>(match.end()) == n_all) {
    match.miss_reason.clear();
    return;
  }
  if (match.miss_reason.empty()) {
    match.miss_reason = NotStored(static_cast<std::size_t>(match.end()), n_all);
  }
  if (match.n_tokens == 0 && root.ok()) match.miss_reason += KeyNote(*root);
}

// A block's file is named after its tokens. So every length that a stored tail
// could have is one id to compute and one name to look for; no directory is
// read. A block that has the asked-for tokens and then others is found by the
// manifests of the prompts last used.
bool DirStore::AppendPartial(const Directory& root, const KvSpec& spec,
                             const BlockQuery& query, std::size_t depth,
                             const std::string& model_name, StoreMatch& match) {
  const auto blocks = root.Sub(kBlocksName);
  if (!blocks.ok()) return false;
  const auto first = static_cast<std::size_t>(match.end());
  const auto longest = std::min(
      query.tokens.size(), static_cast<std::size_t>(spec.block_tokens) - 1);
  std::size_t n = longest;
  for (; n >= 1; --n) {
    const BlockQuery part{query.model_id,
                          query.format_id,
                          query.root_id,
                          query.parent_id,
                          ChildId(query.parent_id, query.tokens.first(n)),
                          query.tokens.first(n)};
    const auto folder = blocks->Sub(BlockFolder(part.block_id));
    if (!folder.ok() || !folder->Exists(BlockName(part.block_id))) continue;
    // Something longer may be found otherwise; one token is computed anyway.
    if (query.tokens.size() > n + 1) {
      const auto cousin = FindCousin(root, spec, query, first, model_name);
      if (cousin.has_value() && cousin->n_common > static_cast<int>(n) &&
          AppendCousin(root, spec, *cousin, depth, match)) {
        return true;
      }
    }
    OpenedBlock opened = MapBlock(*blocks, part);
    VerifyBlock(*blocks, spec, part, opened);
    if (!opened.block.has_value() && opened.error.code == Code::kNotFound) {
      continue;  // what it stands behind is gone
    }
    if (!TakeBlock(part, depth, std::move(opened), match)) continue;
    const auto prompts = root.Sub(kPromptsName);
    if (prompts.ok()) {
      (void)prompts->Touch(
          ManifestPath(PromptStem(model_name, part.block_id)).name,
          StampAt(NowNs(), depth));
    }
    match.miss_reason.clear();
    return true;
  }
  if (query.tokens.size() < 2) return false;
  const auto cousin = FindCousin(root, spec, query, first, model_name);
  return cousin.has_value() && AppendCousin(root, spec, *cousin, depth, match);
}

std::optional<DirStore::Cousin> DirStore::FindCousin(
    const Directory& root, const KvSpec& spec, const BlockQuery& query,
    std::size_t first_token, const std::string& model_name) const {
  std::optional<Cousin> best;
  const auto prompts = root.Sub(kPromptsName);
  const auto blocks = root.Sub(kBlocksName);
  if (!prompts.ok() || !blocks.ok()) return best;
  std::unordered_set<Digest> seen;
  for (const std::string& name :
       RecentManifests(*prompts, model_name, kManifestsToSearch)) {
    const auto manifest = ReadManifest(*prompts, name);
    if (!manifest.ok() || manifest->root_id != query.root_id ||
        manifest->block_tokens != spec.block_tokens) {
      continue;
    }
    const auto& entries = manifest->entries;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (manifest->BlockStart(i) < first_token || !manifest->EndsBlock(i)) {
        continue;
      }
      if (manifest->BlockStart(i) > first_token ||
          manifest->ParentOf(i) != query.parent_id ||
          !seen.insert(entries[i].id).second) {
        break;
      }
      auto header = ReadBlockHeader(*blocks, entries[i].id);
      if (!header.ok() || !CanBePiece(spec, header->tokens.size())) break;
      const auto n = static_cast<int>(
          std::mismatch(header->tokens.begin(), header->tokens.end(),
                        query.tokens.begin(), query.tokens.end())
              .first -
          header->tokens.begin());
      if (n > 0 && (!best.has_value() || n > best->n_common)) {
        best = Cousin{query, std::move(header->tokens), n};
        best->query.block_id = entries[i].id;
      }
      break;
    }
  }
  return best;
}

bool DirStore::AppendCousin(const Directory& root, const KvSpec& spec,
                            const Cousin& cousin, std::size_t depth,
                            StoreMatch& match) {
  const auto blocks = root.Sub(kBlocksName);
  if (!blocks.ok()) return false;
  BlockQuery query = cousin.query;
  query.tokens = cousin.tokens;
  OpenedBlock opened = MapBlock(*blocks, query);
  VerifyBlock(*blocks, spec, query, opened);
  StoreMatch whole;
  whole.first_token = match.end();
  const bool taken = TakeBlock(query, depth, std::move(opened), whole);
  match.warnings.insert(match.warnings.end(), whole.warnings.begin(),
                        whole.warnings.end());
  if (!taken) return false;
  StoredBlock block = std::move(whole.blocks[0]);
  auto start = CutStart(spec, block.payload, block.n_tokens, cousin.n_common);
  if (!start.ok()) return false;
  const auto tokens =
      query.tokens.first(static_cast<std::size_t>(cousin.n_common));
  match.blocks.push_back({ChildId(query.parent_id, tokens), cousin.n_common,
                          start->bytes, std::move(start->owner), false});
  match.n_tokens += cousin.n_common;
  match.miss_reason.clear();
  return true;
}

void DirStore::SetAsideBlock(const Directory& folder, const Digest& id,
                             const Error& error,
                             std::vector<std::string>& warnings) const {
  const auto root = Root();
  const bool moved = root.ok() && SetAside(*root, folder, BlockName(id));
  warnings.push_back(error.message +
                     (moved ? "; moved to quarantine" : "; ignored"));
}

}  // namespace hearth
