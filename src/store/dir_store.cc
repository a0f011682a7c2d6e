#include "store/dir_store.h"

#include <algorithm>
#include <ctime>
#include <map>
#include <utility>

#include "store/bundle.h"
#include "store/layout.h"
#include "store/prompt_file.h"
#include "store/root.h"
#include "store/sidecar.h"

namespace hearth {

struct DirStore::Search {
  const KvIdentity& identity;
  const KvSpec& spec;
  std::span<const std::int32_t> tokens;
  Digest root_id;
  Digest parent;  // id of the last block found, or root_id
  StoreMatch match;

  std::span<const std::int32_t> rest() const {
    return tokens.subspan(static_cast<std::size_t>(match.n_tokens));
  }
  BlockQuery Query(std::span<const std::int32_t> of) const {
    return {identity.model_id,   identity.format_id, root_id, parent,
            ChildId(parent, of), of};
  }
  void Take(StoredBlock block) {
    parent = block.id;
    match.n_tokens += block.n_tokens;
    match.blocks.push_back(std::move(block));
  }
};

namespace {

// Open files of one batch: enough to keep the disk busy, far from any limit.
constexpr std::size_t kBlocksAtOnce = 32;

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
      ops_(options.file_ops ? *options.file_ops : FileOps::System()) {}

Result<std::unique_ptr<DirStore>> DirStore::Open(const std::string& root,
                                                 const StoreOptions& options) {
  std::unique_ptr<DirStore> store(new DirStore(root, options));
  HEARTH_TRY(PrepareRoot(store->ops_, root));
  auto folder = store->Root();
  if (folder.ok()) SweepTemporaries(*folder);
  return store;
}

Result<std::unique_ptr<KvStore>> KvStore::Open(const std::string& root,
                                               const StoreOptions& options) {
  HEARTH_ASSIGN(std::unique_ptr<KvStore> store, DirStore::Open(root, options));
  return store;
}

// --- Lookup ------------------------------------------------------------------

StoreMatch DirStore::Lookup(const KvIdentity& identity, const KvSpec& spec,
                            std::span<const std::int32_t> tokens) {
  const Digest root_id = RootId(identity);
  Search search{identity, spec, tokens, root_id, root_id, {}};
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
  }
  return std::move(search.match);
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
  while (search.rest().size() >= step) {
    const BlockQuery query = search.Query(search.rest().first(step));
    const std::string where = TokenRange(
        static_cast<std::size_t>(search.match.n_tokens), step);
    auto folder = blocks->Sub(BlockFolder(query.block_id));
    if (!folder.ok()) {
      const bool absent = folder.error().code == Code::kNotFound;
      search.match.miss_reason =
          absent ? where + " are not stored" : folder.error().message;
      if (!absent) search.match.warnings.push_back(folder.error().message);
      return;
    }
    auto block = OpenBlockFile(*folder, search, query);
    if (!block.ok()) {
      const Error& error = block.error();
      search.match.miss_reason = error.code == Code::kNotFound
                                     ? where + " are not stored"
                                     : where + ": " + error.message;
      if (IsDefect(error)) {
        SetAside(*folder, BlockName(query.block_id), error,
                 search.match.warnings);
      }
      return;
    }
    (void)folder->Touch(BlockName(query.block_id));  // read-only: no stamp
    search.Take(std::move(block).value());
  }
}

Result<StoredBlock> DirStore::OpenBlockFile(const Directory& folder,
                                            const Search& search,
                                            const BlockQuery& query) const {
  HEARTH_ASSIGN(MappedFile mapped, folder.Map(BlockName(query.block_id)));
  HEARTH_TRY(mapped.Populate());
  auto file = std::make_shared<const MappedFile>(std::move(mapped));
  HEARTH_ASSIGN(const ByteSpan payload,
                OpenBlockImage(file->bytes(), search.spec, query,
                               options_.verify, file->path()));
  return StoredBlock{query.block_id, static_cast<int>(query.tokens.size()),
                     payload, std::move(file)};
}

// A manifest is named after the id at its prompt's end. So every length that a
// stored tail could have is one id to compute and one name to look for; no
// directory is read.
void DirStore::FindTail(Search& search, const Directory& root) {
  const auto rest = search.rest();
  const auto longest = std::min(
      rest.size(), static_cast<std::size_t>(search.spec.block_tokens) - 1);
  std::string reason = search.match.miss_reason;
  if (reason.empty()) {
    reason = TokenRange(static_cast<std::size_t>(search.match.n_tokens),
                        rest.size()) +
             " are not stored";
  }
  const auto prompts = root.Sub(kPromptsName);
  for (std::size_t n = prompts.ok() ? longest : 0; n >= 1; --n) {
    const BlockQuery query = search.Query(rest.first(n));
    const std::string name =
        PromptStem(search.identity.model_name, query.block_id) +
        std::string(kPromptSuffix);
    if (!prompts->Exists(name)) continue;
    auto tail = OpenTail(*prompts, search, name, query);
    if (tail.ok()) {
      (void)prompts->Touch(name);
      search.Take(std::move(tail).value());
      if (!search.rest().empty()) {
        reason = TokenRange(static_cast<std::size_t>(search.match.n_tokens),
                            search.rest().size()) +
                 " are not stored";
      }
      break;
    }
    if (tail.error().code == Code::kNotFound) continue;
    reason = tail.error().message;
    if (IsDefect(tail.error())) {
      SetAside(*prompts, name, tail.error(), search.match.warnings);
    }
  }
  search.match.miss_reason = std::move(reason);
}

Result<StoredBlock> DirStore::OpenTail(const Directory& prompts,
                                       const Search& search,
                                       const std::string& name,
                                       const BlockQuery& query) const {
  HEARTH_ASSIGN(MappedFile mapped, prompts.Map(name));
  HEARTH_TRY(mapped.Populate());
  auto file = std::make_shared<const MappedFile>(std::move(mapped));
  HEARTH_ASSIGN(const PromptHeader header,
                ParsePromptFile(file->bytes(), file->path()));
  const PromptEntry& last = header.blocks.back();
  if (last.id != query.block_id) {
    // The name holds 48 bits of the id, so another prompt may own it.
    return {Code::kNotFound, file->path() + ": another prompt's"};
  }
  const std::size_t n_known =
      static_cast<std::size_t>(search.match.n_tokens) + query.tokens.size();
  if (header.root_id != search.root_id || header.tokens.size() != n_known ||
      !std::equal(header.tokens.begin(), header.tokens.end(),
                  search.tokens.begin())) {
    return {Code::kCorrupt, file->path() + ": other tokens than its id's"};
  }
  if (last.image_at == 0) return {Code::kNotFound, file->path() + ": no tail"};
  HEARTH_ASSIGN(
      const ByteSpan payload,
      OpenBlockImage(file->bytes().subspan(last.image_at, last.image_bytes),
                     search.spec, query, options_.verify, file->path()));
  return StoredBlock{query.block_id, static_cast<int>(query.tokens.size()),
                     payload, std::move(file)};
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

// --- Save --------------------------------------------------------------------

Result<Directory> DirStore::RootToWrite() const {
  auto root = Root();
  if (root.ok() || root.error().code != Code::kNotFound) return root;
  HEARTH_TRY(PrepareRoot(ops_, root_));  // somebody deleted the whole store
  return Root();
}

Result<void> DirStore::SaveBlock(const KvIdentity& identity,
                                 const KvSpec& spec, const BlockToSave& block) {
  return SaveSome(identity, spec, std::span(&block, 1));
}

Result<void> DirStore::SaveBlocks(const KvIdentity& identity,
                                  const KvSpec& spec,
                                  std::span<const BlockToSave> blocks) {
  while (!blocks.empty()) {
    const auto some = blocks.first(std::min(blocks.size(), kBlocksAtOnce));
    HEARTH_TRY(SaveSome(identity, spec, some));
    blocks = blocks.subspan(some.size());
  }
  return {};
}

// Writes all, flushes all, names all, flushes the folders: in this order a name
// never stands for bytes that are not durable.
Result<void> DirStore::SaveSome(const KvIdentity& identity, const KvSpec& spec,
                                std::span<const BlockToSave> blocks) {
  const Digest root_id = RootId(identity);
  HEARTH_ASSIGN(const Directory root, RootToWrite());
  HEARTH_ASSIGN(const Directory top, root.MakeSub(kBlocksName));
  bool made_folder = false;
  std::map<std::string, Directory> folders;  // before `files`, which use them
  std::vector<PendingFile> files;
  for (const BlockToSave& block : blocks) {
    if (ChildId(block.parent, block.tokens) != block.id) {
      return {Code::kInvalidArgument, "a block's id is not that of its tokens"};
    }
    HEARTH_ASSIGN(Directory opened,
                  top.MakeSub(BlockFolder(block.id), &made_folder));
    const Directory& folder =
        folders.try_emplace(BlockFolder(block.id), std::move(opened))
            .first->second;
    const std::string name = BlockName(block.id);
    const BlockQuery query{identity.model_id, identity.format_id, root_id,
                           block.parent,      block.id,           block.tokens};
    if (HoldsBlock(folder, name, query)) {
      (void)folder.Touch(name);
      continue;
    }
    HEARTH_ASSIGN(const std::vector<std::byte> header,
                  EncodeBlockHeader(identity, root_id, spec, block.parent,
                                    block.id, block.tokens, block.payload));
    const ByteSpan parts[] = {header, block.payload};
    HEARTH_ASSIGN(PendingFile file, folder.Begin(name, parts));
    files.push_back(std::move(file));
  }
  for (PendingFile& file : files) HEARTH_TRY(file.Flush());
  for (PendingFile& file : files) HEARTH_TRY(file.Publish());
  if (!files.empty()) {
    for (const auto& [name, folder] : folders) HEARTH_TRY(folder.Sync());
  }
  if (made_folder) HEARTH_TRY(top.Sync());
  return {};
}

// Looks at the header alone: a file appears under its name only when complete,
// and a payload that was damaged later is set aside by the next lookup.
bool DirStore::HoldsBlock(const Directory& folder, const std::string& name,
                          const BlockQuery& query) const {
  const auto entry = folder.Stat(name);
  if (!entry.ok() || !entry->is_file) return false;
  auto start = folder.ReadStart(name, kImageAlign);
  if (start.ok() && StatedHeaderBytes(*start) > start->size()) {
    start = folder.ReadStart(name, StatedHeaderBytes(*start));
  }
  if (!start.ok()) return false;
  const auto header = ParseBlockHeader(*start, entry->size, name);
  // Of a later version: leave it, rather than fight over the name.
  if (!header.ok()) return header.error().code == Code::kIncompatible;
  return CheckBlockHeader(*header, query, name).ok();
}

Result<void> DirStore::SaveManifest(const KvIdentity& identity,
                                    const KvSpec& spec,
                                    std::span<const std::int32_t> tokens,
                                    const BlockToSave* tail,
                                    const std::string& preview) {
  const std::size_t n_tail =
      tokens.size() % static_cast<std::size_t>(spec.block_tokens);
  if (tokens.empty() || (tail == nullptr) != (n_tail == 0)) {
    return {Code::kInvalidArgument,
            "a manifest needs its prompt's partial block, and no other"};
  }
  const auto images =
      tail ? std::span(tail, 1) : std::span<const BlockToSave>();
  HEARTH_ASSIGN(const PromptFileParts file,
                EncodePrompt(identity, spec, tokens, images));
  HEARTH_ASSIGN(const Directory root, RootToWrite());
  HEARTH_ASSIGN(const Directory prompts, root.MakeSub(kPromptsName));
  const Digest end = ChainIds(identity, tokens, spec.block_tokens).back();
  const std::string stem = PromptStem(identity.model_name, end);
  HEARTH_TRY(prompts.Write(stem + std::string(kPromptSuffix), file.parts));
  SidecarFacts facts;
  facts.end_id = end;
  facts.n_tokens = tokens.size();
  for (const ByteSpan part : file.parts) facts.manifest_bytes += part.size();
  facts.created_unix_s = static_cast<std::int64_t>(std::time(nullptr));
  facts.preview = preview;
  const std::string note = SidecarText(identity, spec, facts);
  const ByteSpan parts[] = {AsBytes(note)};
  return prompts.Write(stem + std::string(kSidecarSuffix), parts,
                       Durability::kCached);
}

}  // namespace hearth
