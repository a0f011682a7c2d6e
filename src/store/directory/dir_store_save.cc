// The writing half of DirStore.
#include <algorithm>
#include <ctime>
#include <map>
#include <utility>

#include "store/directory/dir_store.h"
#include "store/directory/layout.h"
#include "store/directory/root.h"
#include "store/format/block_pieces.h"
#include "store/format/prompt_file.h"
#include "store/format/sidecar.h"
#include "store/format/token_reader.h"

namespace hearth {
namespace {

// Open files of one batch: enough to keep the disk busy, far from any limit.
constexpr std::size_t kBlocksAtOnce = 32;

// Block ids kept in memory to know the chain in use; some 100 bytes each.
constexpr std::size_t kRememberedMax = std::size_t{1} << 20;

}  // namespace

Result<Directory> DirStore::RootToWrite() const {
  auto root = Root();
  if (root.ok() || root.error().code != Code::kNotFound) return root;
  HEARTH_TRY(PrepareRoot(ops_, root_));  // somebody deleted the whole store
  return Root();
}

void DirStore::Remember(const Digest& id, const Link& link) {
  const std::lock_guard lock(mutex_);
  if (links_.size() >= kRememberedMax) links_.clear();
  links_[id] = link;
}

std::vector<DirStore::Place> DirStore::RememberedPlaces(Digest id,
                                                        int n_tokens) const {
  const std::lock_guard lock(mutex_);
  std::vector<Place> places;
  while (n_tokens > 0) {
    const auto link = links_.find(id);
    if (link == links_.end()) return {};
    places.push_back({id, n_tokens});
    id = link->second.before;
    n_tokens = link->second.first;
  }
  std::reverse(places.begin(), places.end());
  return places;
}

void DirStore::ProtectChain(Digest id, Protection& protection) const {
  const std::lock_guard lock(mutex_);
  while (protection.blocks.insert(id).second) {
    const auto link = links_.find(id);
    if (link == links_.end()) return;
    id = link->second.before;
  }
}

Result<void> DirStore::SaveBlock(const KvIdentity& identity, const KvSpec& spec,
                                 const BlockToSave& block) {
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

// Makes room, writes all, flushes all, names all, flushes the folders: in this
// order a name never stands for bytes that are not durable.
Result<void> DirStore::SaveSome(const KvIdentity& identity, const KvSpec& spec,
                                std::span<const BlockToSave> blocks) {
  struct NewBlock {
    const BlockToSave* block;
    const Directory* folder;
    std::vector<std::byte> header, piece, sealed;
    std::vector<ByteSpan> parts;  // as they go to the disk
    std::uint64_t bytes;          // of all parts
  };
  const Digest root_id = RootId(identity);
  HEARTH_ASSIGN(const Directory root, RootToWrite());
  HEARTH_ASSIGN(const Directory top, root.MakeSub(kBlocksName));
  bool made_folder = false;
  std::map<std::string, Directory> folders;  // outlive the files in them
  std::vector<NewBlock> missing;
  Protection protection;
  std::uint64_t bytes = 0;
  for (const BlockToSave& block : blocks) {
    if (ChildId(block.parent, block.tokens) != block.id) {
      return {Code::kInvalidArgument, "a block's id is not that of its tokens"};
    }
    HEARTH_ASSIGN(Directory opened,
                  top.MakeSub(BlockFolder(block.id), &made_folder));
    const Directory& folder =
        folders.try_emplace(BlockFolder(block.id), std::move(opened))
            .first->second;
    const BlockQuery query{identity.model_id, identity.format_id, root_id,
                           block.parent,      block.id,           block.tokens};
    const bool stored = !PlacesOf(top, query).empty();
    const int first =
        stored || &block != blocks.data() ? 0 : StoredStart(top, spec, query);
    if (!stored) {
      const auto before = block.tokens.first(static_cast<std::size_t>(first));
      Remember(
          block.id,
          {first == 0 ? block.parent : ChildId(block.parent, before), first});
    }
    ProtectChain(block.id, protection);
    if (stored) {
      (void)folder.Touch(BlockName(block.id), NowNs());
      continue;
    }
    NewBlock item{&block, &folder, {}, {}, {}, {}, 0};
    ByteSpan payload = block.payload;
    if (first > 0) {
      item.piece =
          CutPiece(spec, payload, static_cast<int>(block.tokens.size()), first);
      payload = item.piece;
    }
    HEARTH_ASSIGN(item.header,
                  EncodeBlockHeader(identity, root_id, spec, block.parent,
                                    block.id, block.tokens, payload, first));
    const ByteSpan parts[] = {item.header, payload};
    HEARTH_ASSIGN(item.parts, ForDisk(root.vault(), parts, item.sealed));
    for (const ByteSpan part : item.parts) item.bytes += part.size();
    bytes += item.bytes;
    missing.push_back(std::move(item));
  }
  if (missing.empty()) return {};
  std::vector<PendingFile> files;
  {
    HEARTH_ASSIGN(SpaceLock lock, SpaceLock::Take(root));
    HEARTH_TRY(lock.MakeRoom(root, bytes, limits_, protection));
    for (const NewBlock& item : missing) {
      HEARTH_ASSIGN(PendingFile file,
                    item.folder->Create(BlockName(item.block->id), item.bytes));
      files.push_back(std::move(file));
    }
  }
  for (std::size_t i = 0; i < files.size(); ++i) {
    HEARTH_TRY(files[i].Fill(missing[i].parts));
  }
  for (PendingFile& file : files) HEARTH_TRY(file.Flush());
  {
    // Under the lock, so that a scan does not miss a file between two names.
    HEARTH_ASSIGN(const SpaceLock lock, SpaceLock::Take(root));
    for (PendingFile& file : files) HEARTH_TRY(file.Publish());
  }
  for (const auto& [name, folder] : folders) HEARTH_TRY(folder.Sync());
  if (made_folder) HEARTH_TRY(top.Sync());
  return {};
}

Result<DirStore::Arrival> DirStore::Receive(const BlockQuery& query,
                                            const KvSpec& spec,
                                            ByteSpan image) {
  HEARTH_ASSIGN(const Directory root, RootToWrite());
  HEARTH_ASSIGN(const Directory blocks, root.MakeSub(kBlocksName));
  bool made_folder = false;
  HEARTH_ASSIGN(Directory opened,
                blocks.MakeSub(BlockFolder(query.block_id), &made_folder));
  const auto folder = std::make_shared<const Directory>(std::move(opened));
  Remember(query.block_id, {query.parent_id, 0});
  Protection protection;
  ProtectChain(query.block_id, protection);
  std::shared_ptr<PendingFile> file;
  {
    HEARTH_ASSIGN(SpaceLock lock, SpaceLock::Take(root));
    HEARTH_TRY(lock.MakeRoom(root, image.size(), limits_, protection));
    HEARTH_ASSIGN(PendingFile made,
                  folder->Create(BlockName(query.block_id), image.size()));
    file = std::make_shared<PendingFile>(std::move(made));
  }
  HEARTH_TRY(file->Fill(std::span(&image, 1)));
  HEARTH_ASSIGN(MappedFile mapped, file->Map());
  const auto owner = std::make_shared<const MappedFile>(std::move(mapped));
  HEARTH_ASSIGN(const OpenImage found,
                OpenBlockImage(owner->bytes(), spec, query,
                               /*check_payload=*/false, owner->path()));
  Arrival arrival;
  arrival.block = {query.block_id, static_cast<int>(query.tokens.size()),
                   found.payload, owner, true};
  arrival.Keep = [this, folder, file, made_folder]() -> Result<void> {
    HEARTH_TRY(file->Flush());
    HEARTH_ASSIGN(const Directory top, Root());
    {
      HEARTH_ASSIGN(const SpaceLock lock, SpaceLock::Take(top));
      HEARTH_TRY(file->Publish());
    }
    HEARTH_TRY(folder->Sync());
    if (!made_folder) return {};
    HEARTH_ASSIGN(const Directory all, top.Sub(kBlocksName));
    return all.Sync();
  };
  return arrival;
}

// Headers are enough: a file appears under its name only when complete, and a
// payload that was damaged later is set aside by the next lookup.
std::vector<DirStore::Place> DirStore::PlacesOf(const Directory& blocks,
                                                BlockQuery query) {
  std::vector<Place> places;
  for (int first = 1; first > 0;) {
    const auto header = ReadBlockHeader(blocks, query.block_id);
    // Of a later version: leave it, rather than fight over the name.
    const bool later =
        !header.ok() && header.error().code == Code::kIncompatible;
    if (!later &&
        (!header.ok() || !CheckBlockHeader(*header, query, "block").ok())) {
      return {};
    }
    places.push_back({query.block_id, static_cast<int>(query.tokens.size())});
    first = later ? 0 : header->first_token;
    query.tokens = query.tokens.first(static_cast<std::size_t>(first));
    if (first > 0) query.block_id = ChildId(query.parent_id, query.tokens);
  }
  std::reverse(places.begin(), places.end());
  Link link{query.parent_id, 0};
  for (const Place& place : places) {
    Remember(place.id, link);
    link = {place.id, place.end};
  }
  return places;
}

int DirStore::StoredStart(const Directory& blocks, const KvSpec& spec,
                          const BlockQuery& query) {
  if (!CanBePiece(spec, query.tokens.size())) return 0;
  for (std::size_t n = query.tokens.size() - 1; n > 0; --n) {
    BlockQuery start = query;
    start.tokens = query.tokens.first(n);
    start.block_id = ChildId(query.parent_id, start.tokens);
    const auto folder = blocks.Sub(BlockFolder(start.block_id));
    if (!folder.ok() || !folder->Exists(BlockName(start.block_id))) continue;
    const std::size_t n_pieces = PlacesOf(blocks, start).size();
    if (n_pieces > 0 && n_pieces < kBlockPiecesMax) return static_cast<int>(n);
  }
  return 0;
}

Result<void> DirStore::SaveManifest(const KvIdentity& identity,
                                    const KvSpec& spec,
                                    std::span<const std::int32_t> tokens,
                                    const std::string& preview) {
  HEARTH_ASSIGN(const Directory root, RootToWrite());
  HEARTH_ASSIGN(const Directory prompts, root.MakeSub(kPromptsName));
  HEARTH_ASSIGN(const Directory blocks, root.MakeSub(kBlocksName));
  PromptHeader header = HeaderOf(identity, spec);
  const auto chain = ChainIds(identity, tokens, spec.block_tokens);
  const auto step = static_cast<std::size_t>(spec.block_tokens);
  for (std::size_t i = 0; i < chain.size(); ++i) {
    const std::size_t start = i * step;
    const BlockQuery query{
        identity.model_id,
        identity.format_id,
        header.root_id,
        i == 0 ? header.root_id : chain[i - 1],
        chain[i],
        tokens.subspan(start, std::min(step, tokens.size() - start))};
    const int n_tokens = static_cast<int>(query.tokens.size());
    auto places = RememberedPlaces(chain[i], n_tokens);
    if (places.empty()) places = PlacesOf(blocks, query);
    // Evicted meanwhile: named all the same, it may come back.
    if (places.empty()) {
      places.push_back({chain[i], n_tokens});
    }
    for (const Place& place : places) {
      header.entries.push_back(
          {place.id, start + static_cast<std::size_t>(place.end), 0, 0});
    }
  }
  HEARTH_ASSIGN(const PromptFileParts file, EncodePromptFile(header, {}));
  const std::string stem = PromptStem(identity.model_name, chain.back());
  std::vector<std::byte> sealed, sealed_note;
  HEARTH_ASSIGN(const auto parts, ForDisk(root.vault(), file.parts, sealed));
  SidecarFacts facts;
  facts.end_id = chain.back();
  facts.n_tokens = tokens.size();
  for (const ByteSpan part : parts) facts.manifest_bytes += part.size();
  facts.created_unix_s = static_cast<std::int64_t>(std::time(nullptr));
  facts.preview = preview;
  const std::string note = SidecarText(identity, spec, facts);
  const ByteSpan plain_note[] = {AsBytes(note)};
  HEARTH_ASSIGN(const auto note_parts,
                ForDisk(root.vault(), plain_note, sealed_note));
  const std::uint64_t note_bytes = note_parts[0].size();

  Protection protection;
  for (const PromptEntry& entry : header.entries) {
    protection.blocks.insert(entry.id);
  }
  protection.stems.insert(stem);
  std::vector<PendingFile> files;
  {
    HEARTH_ASSIGN(SpaceLock lock, SpaceLock::Take(root));
    HEARTH_TRY(lock.MakeRoom(root, facts.manifest_bytes + note_bytes, limits_,
                             protection));
    HEARTH_ASSIGN(PendingFile manifest,
                  prompts.Create(stem + std::string(kPromptSuffix),
                                 facts.manifest_bytes));
    files.push_back(std::move(manifest));
    HEARTH_ASSIGN(
        PendingFile sidecar,
        prompts.Create(stem + std::string(kSidecarSuffix), note_bytes));
    files.push_back(std::move(sidecar));
  }
  HEARTH_TRY(files[0].Fill(parts));
  HEARTH_TRY(files[1].Fill(note_parts));
  HEARTH_TRY(files[0].Flush());
  {
    HEARTH_ASSIGN(const SpaceLock lock, SpaceLock::Take(root));
    HEARTH_TRY(files[0].Publish());
    HEARTH_TRY(files[1].Publish());  // a lost note costs nothing: not flushed
  }
  HEARTH_TRY(prompts.Sync());
  StampChain(blocks, header);
  return {};
}

// Blocks were written parents first; their stamps must say the opposite.
void DirStore::StampChain(const Directory& blocks,
                          const PromptHeader& header) const {
  const std::int64_t now_ns = NowNs();
  for (std::size_t i = 0; i < header.entries.size(); ++i) {
    const Digest& id = header.entries[i].id;
    const auto folder = blocks.Sub(BlockFolder(id));
    if (folder.ok()) (void)folder->Touch(BlockName(id), StampAt(now_ns, i));
  }
}

}  // namespace hearth
