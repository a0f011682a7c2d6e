// The writing half of DirStore.
#include <algorithm>
#include <ctime>
#include <map>
#include <utility>

#include "store/bundle.h"
#include "store/dir_store.h"
#include "store/layout.h"
#include "store/root.h"
#include "store/sidecar.h"

namespace hearth {
namespace {

// Open files of one batch: enough to keep the disk busy, far from any limit.
constexpr std::size_t kBlocksAtOnce = 32;

}  // namespace

Result<Directory> DirStore::RootToWrite() const {
  auto root = Root();
  if (root.ok() || root.error().code != Code::kNotFound) return root;
  HEARTH_TRY(PrepareRoot(ops_, root_));  // somebody deleted the whole store
  return Root();
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
    std::vector<std::byte> header, sealed;
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
    Remember(block.id, block.parent);
    ProtectChain(block.id, protection);
    HEARTH_ASSIGN(Directory opened,
                  top.MakeSub(BlockFolder(block.id), &made_folder));
    const Directory& folder =
        folders.try_emplace(BlockFolder(block.id), std::move(opened))
            .first->second;
    const BlockQuery query{identity.model_id, identity.format_id, root_id,
                           block.parent,      block.id,           block.tokens};
    if (HoldsBlock(folder, query, block.payload.size())) {
      (void)folder.Touch(BlockName(block.id), NowNs());
      continue;
    }
    NewBlock item{&block, &folder, {}, {}, {}, 0};
    HEARTH_ASSIGN(item.header,
                  EncodeBlockHeader(identity, root_id, spec, block.parent,
                                    block.id, block.tokens, block.payload));
    const ByteSpan parts[] = {item.header, block.payload};
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
      HEARTH_ASSIGN(
          PendingFile file,
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

// Looks at the header alone: a file appears under its name only when complete,
// and a payload that was damaged later is set aside by the next lookup.
// An encrypted one is only looked at from outside.
bool DirStore::HoldsBlock(const Directory& folder, const BlockQuery& query,
                          std::uint64_t payload_bytes) const {
  const std::string name = BlockName(query.block_id);
  const auto entry = folder.Stat(name);
  if (!entry.ok() || !entry->is_file) return false;
  if (folder.vault() != nullptr) {
    const auto sealed = folder.ReadStart(name, kImageAlign);
    return sealed.ok() && CheckKey(*sealed, folder.vault(), name).ok() &&
           entry->size > Vault::SealedBytes(payload_bytes);
  }
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
  const auto chain = ChainIds(identity, tokens, spec.block_tokens);
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
  protection.blocks.insert(chain.begin(), chain.end());
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
  StampChain(root, chain);
  return {};
}

// Blocks were written parents first; their stamps must say the opposite.
void DirStore::StampChain(const Directory& root,
                          std::span<const Digest> chain) const {
  const std::int64_t now_ns = NowNs();
  const auto blocks = root.Sub(kBlocksName);
  for (std::size_t i = 0; blocks.ok() && i < chain.size(); ++i) {
    const auto folder = blocks->Sub(BlockFolder(chain[i]));
    if (folder.ok()) {
      (void)folder->Touch(BlockName(chain[i]), StampAt(now_ns, i));
    }
  }
}

}  // namespace hearth
