// The writing half of DirStore.
#include <algorithm>
#include <ctime>
#include <utility>

#include "store/directory/dir_store.h"
#include "store/directory/layout.h"
#include "store/directory/state_names.h"
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

// A block on its way to the disk. Its parts point into the others.
struct DirStore::NewBlock {
  std::vector<std::byte> header, piece, sealed;
  FileToWrite file;
};

void DirStore::Remember(const Digest& id, const Link& link) {
  const MutexLock lock(mutex_);
  if (links_.size() >= kRememberedMax) links_.clear();
  links_[id] = link;
}

std::vector<DirStore::Place> DirStore::RememberedPlaces(Digest id,
                                                        int n_tokens) const {
  const MutexLock lock(mutex_);
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
  const MutexLock lock(mutex_);
  while (protection.blocks.insert(id).second) {
    const auto link = links_.find(id);
    if (link == links_.end()) return;
    id = link->second.before;
  }
}

Result<void> DirStore::SaveBlocks(const BlockChain& prompt, const KvSpec& spec,
                                  std::size_t first_block,
                                  std::span<const ByteSpan> payloads) {
  if (first_block + payloads.size() > prompt.size()) {
    return {Code::kInvalidArgument, "more blocks than the prompt has"};
  }
  HEARTH_ASSIGN(const BudgetedWriter writer, Writer());
  while (!payloads.empty()) {
    const auto some = payloads.first(std::min(payloads.size(), kBlocksAtOnce));
    HEARTH_TRY(SaveSome(writer, prompt, spec, first_block, some));
    first_block += some.size();
    payloads = payloads.subspan(some.size());
  }
  return {};
}

Result<void> DirStore::SaveSome(const BudgetedWriter& writer,
                                const BlockChain& prompt, const KvSpec& spec,
                                std::size_t first_block,
                                std::span<const ByteSpan> payloads) {
  std::vector<NewBlock> missing;
  Protection protection;
  for (std::size_t i = 0; i < payloads.size(); ++i) {
    HEARTH_ASSIGN(
        std::optional<NewBlock> block,
        PrepareBlock(writer.root(), spec, QueryOf(prompt, first_block + i),
                     payloads[i], prompt.identity(),
                     /*look_for_start=*/missing.empty(), protection));
    if (block.has_value()) missing.push_back(std::move(*block));
  }
  if (missing.empty()) return {};
  std::vector<FileToWrite> files;
  for (NewBlock& block : missing) files.push_back(std::move(block.file));
  return writer.Write(files, protection);
}

// Nothing when the block needs no file.
Result<std::optional<DirStore::NewBlock>> DirStore::PrepareBlock(
    const Directory& root, const KvSpec& spec, const BlockQuery& query,
    ByteSpan payload, const KvIdentity& identity, bool look_for_start,
    Protection& protection) {
  const auto blocks = root.Sub(kBlocksName);
  const bool stored = blocks.ok() && !PlacesOf(*blocks, query).empty();
  Start start;
  if (!stored && look_for_start && blocks.ok()) {
    start = StoredStart(*blocks, spec, query);
  }
  const std::size_t n_tokens = query.tokens.size();
  if (Waits(spec, query, start)) {
    ProtectChain(
        ChildId(query.parent_id,
                query.tokens.first(static_cast<std::size_t>(start.end))),
        protection);
    return std::optional<NewBlock>();
  }
  if (!stored) {
    const auto before = query.tokens.first(static_cast<std::size_t>(start.end));
    Remember(query.block_id, {start.end == 0 ? query.parent_id
                                             : ChildId(query.parent_id, before),
                              start.end});
  }
  ProtectChain(query.block_id, protection);
  if (stored) {
    const auto folder = blocks->Sub(BlockFolder(query.block_id));
    if (folder.ok()) (void)folder->Touch(BlockName(query.block_id), NowNs());
    return std::optional<NewBlock>();
  }
  NewBlock block;
  if (start.end > 0) {
    block.piece =
        CutPiece(spec, payload, static_cast<int>(n_tokens), start.end);
    payload = block.piece;
  }
  HEARTH_ASSIGN(
      block.header,
      EncodeBlockHeader(identity, query.root_id, spec, query.parent_id,
                        query.block_id, query.tokens, payload, start.end));
  const ByteSpan parts[] = {block.header, payload};
  HEARTH_ASSIGN(auto on_disk, ForDisk(root.vault(), parts, block.sealed));
  block.file = {BlockPath(query.block_id), std::move(on_disk)};
  return std::optional<NewBlock>(std::move(block));
}

Result<DirStore::Arrival> DirStore::Receive(const BlockQuery& query,
                                            const KvSpec& spec,
                                            ByteSpan image) {
  HEARTH_ASSIGN(const BudgetedWriter writer, Writer());
  Remember(query.block_id, {query.parent_id, 0});
  Protection protection;
  ProtectChain(query.block_id, protection);
  const FileToWrite file{BlockPath(query.block_id), {image}};
  HEARTH_ASSIGN(WrittenFiles begun,
                writer.Begin(std::span(&file, 1), protection));
  HEARTH_ASSIGN(MappedFile mapped, begun.Map(0));
  const auto owner = std::make_shared<const MappedFile>(std::move(mapped));
  HEARTH_ASSIGN(const OpenImage found,
                OpenBlockImage(owner->bytes(), spec, query,
                               /*check_payload=*/false, owner->path()));
  Arrival arrival;
  arrival.block = {query.block_id, static_cast<int>(query.tokens.size()),
                   found.payload, owner, true};
  arrival.Keep = [written = std::make_shared<WrittenFiles>(std::move(begun))] {
    return written->Finish();
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

DirStore::Start DirStore::StoredStart(const Directory& blocks,
                                      const KvSpec& spec,
                                      const BlockQuery& query) {
  if (!CanBePiece(spec, query.tokens.size())) return {};
  for (std::size_t n = query.tokens.size() - 1; n > 0; --n) {
    BlockQuery start = query;
    start.tokens = query.tokens.first(n);
    start.block_id = ChildId(query.parent_id, start.tokens);
    const auto folder = blocks.Sub(BlockFolder(start.block_id));
    if (!folder.ok() || !folder->Exists(BlockName(start.block_id))) continue;
    const auto places = PlacesOf(blocks, start);
    if (places.empty() || places.size() >= kBlockPiecesMax) continue;
    const int before = places.size() < 2 ? 0 : places[places.size() - 2].end;
    return {places.back().end, places.back().end - before};
  }
  return {};
}

bool DirStore::Waits(const KvSpec& spec, const BlockQuery& query,
                     const Start& start) {
  const int n_tokens = static_cast<int>(query.tokens.size());
  // States behind tokens that are not stored would be of no use.
  return spec.states.empty() && start.end > 0 && n_tokens < spec.block_tokens &&
         WaitsForMore(spec, n_tokens - start.end, start.last_piece);
}

// What the prompt's manifest says, with blocks where they are.
PromptHeader DirStore::ManifestOf(const BlockChain& prompt, const KvSpec& spec,
                                  const Directory* blocks) {
  PromptHeader header = HeaderOf(prompt.identity(), spec);
  for (std::size_t i = 0; i < prompt.size(); ++i) {
    const BlockQuery query = QueryOf(prompt, i);
    const int n_tokens = static_cast<int>(query.tokens.size());
    auto places = RememberedPlaces(query.block_id, n_tokens);
    if (places.empty() && blocks != nullptr) places = PlacesOf(*blocks, query);
    // Evicted meanwhile: named all the same, it may come back.
    if (places.empty()) places.push_back({query.block_id, n_tokens});
    for (const Place& place : places) {
      header.entries.push_back(
          {place.id, prompt.BeginOf(i) + static_cast<std::size_t>(place.end), 0,
           0});
    }
  }
  return header;
}

// How many tokens of the prompt a manifest can name: those that wait are not
// stored.
std::size_t DirStore::NamedTokens(const BlockChain& prompt, const KvSpec& spec,
                                  const Directory& blocks) {
  const std::size_t n_all = prompt.tokens().size();
  if (prompt.size() == prompt.n_full()) return n_all;
  const BlockQuery last = QueryOf(prompt, prompt.n_full());
  if (!PlacesOf(blocks, last).empty()) return n_all;
  const Start start = StoredStart(blocks, spec, last);
  if (!Waits(spec, last, start)) return n_all;
  return prompt.BeginOf(prompt.n_full()) + static_cast<std::size_t>(start.end);
}

Result<void> DirStore::SaveManifest(const BlockChain& prompt,
                                    const KvSpec& spec,
                                    const std::string& preview) {
  HEARTH_ASSIGN(const BudgetedWriter writer, Writer());
  const auto blocks = writer.root().Sub(kBlocksName);
  if (blocks.ok()) {
    const std::size_t n_named = NamedTokens(prompt, spec, *blocks);
    if (n_named < prompt.tokens().size()) {
      const BlockChain named = prompt.First(n_named);
      const StorePath there =
          ManifestPath(PromptStem(named.identity().model_name, named.end_id()));
      const auto prompts = writer.root().Sub(kPromptsName);
      if (prompts.ok() && prompts->Touch(there.name, NowNs()).ok()) return {};
      return SaveManifest(named, spec, preview);
    }
  }
  PromptHeader header =
      ManifestOf(prompt, spec, blocks.ok() ? &*blocks : nullptr);
  if (header.carries_states) {
    header.states = StatesOf(writer.root(), prompt, prompt.tokens().size());
  }
  HEARTH_ASSIGN(const PromptFileParts file, EncodePromptFile(header, {}));
  const std::string stem =
      PromptStem(prompt.identity().model_name, prompt.end_id());
  const Vault* vault = writer.root().vault();
  std::vector<std::byte> sealed, sealed_note;
  HEARTH_ASSIGN(auto parts, ForDisk(vault, file.parts, sealed));
  SidecarFacts facts;
  facts.end_id = prompt.end_id();
  facts.n_tokens = prompt.tokens().size();
  for (const ByteSpan part : parts) facts.manifest_bytes += part.size();
  facts.created_unix_s = static_cast<std::int64_t>(std::time(nullptr));
  facts.preview = preview;
  const std::string note = SidecarText(prompt.identity(), spec, facts);
  const ByteSpan plain_note[] = {AsBytes(note)};
  HEARTH_ASSIGN(auto note_parts, ForDisk(vault, plain_note, sealed_note));

  Protection protection;
  for (const PromptEntry& entry : header.entries) {
    protection.blocks.insert(entry.id);
  }
  for (const PromptEntry& state : header.states) {
    protection.states.insert(state.id);
  }
  protection.stems.insert(stem);
  // A lost note costs nothing: not flushed.
  const FileToWrite files[] = {
      {ManifestPath(stem), std::move(parts)},
      {NotePath(stem), std::move(note_parts), Durability::kCached}};
  HEARTH_TRY(writer.Write(files, protection));
  if (blocks.ok()) StampChain(*blocks, header);
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
