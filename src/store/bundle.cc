#include "store/bundle.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "store/block_image.h"
#include "store/directory.h"
#include "store/root.h"
#include "store/vault.h"

namespace hearth {
namespace {

// The key field that makes the file useless for this run; empty when none does.
std::string KeyDifference(const PromptHeader& header,
                          const KvIdentity& identity, const KvSpec& spec) {
  if (header.model_id != identity.model_id) return "made by another model";
  if (header.format_id != identity.format_id ||
      header.block_tokens != spec.block_tokens) {
    return "made in another KV format";
  }
  if (header.root_id != RootId(identity)) return "of another name space";
  return "";
}

Result<void> RefuseForeignFile(const std::string& path) {
  const auto file = MappedFile::Open(path);
  if (!file.ok()) {
    if (file.error().code == Code::kNotFound) return {};
    return file.error();
  }
  // An empty file holds nothing that could be lost.
  if (file->bytes().empty() || LooksLikePromptFile(file->bytes()) ||
      LooksSealed(file->bytes())) {
    return {};
  }
  return {Code::kInvalidArgument,
          path + ": exists and is not a hearth prompt cache; not overwritten"};
}

}  // namespace

Result<PromptFileParts> EncodePrompt(const KvIdentity& identity,
                                     const KvSpec& spec,
                                     std::span<const std::int32_t> tokens,
                                     std::span<const BlockToSave> blocks) {
  PromptHeader header;
  header.model_id = identity.model_id;
  header.format_id = identity.format_id;
  header.root_id = RootId(identity);
  header.block_tokens = spec.block_tokens;
  header.model_name = identity.model_name;
  header.tokens.assign(tokens.begin(), tokens.end());
  for (const Digest& id : ChainIds(identity, tokens, spec.block_tokens)) {
    header.blocks.push_back({id, 0, 0});
  }
  if (blocks.size() > header.blocks.size()) {
    return {Code::kInvalidArgument, "more blocks than the prompt has"};
  }
  std::vector<PromptImage> images;
  std::size_t index = header.blocks.size() - blocks.size();
  for (const BlockToSave& block : blocks) {
    const auto expected = header.BlockTokens(index);
    if (block.id != header.blocks[index].id ||
        block.parent != header.ParentOf(index) ||
        !std::equal(block.tokens.begin(), block.tokens.end(), expected.begin(),
                    expected.end())) {
      return {Code::kInvalidArgument,
              "block " + std::to_string(index) + " is not the prompt's"};
    }
    HEARTH_ASSIGN(
        std::vector<std::byte> image_header,
        EncodeBlockHeader(identity, header.root_id, spec, block.parent,
                          block.id, block.tokens, block.payload));
    images.push_back({index, std::move(image_header), block.payload});
    ++index;
  }
  return EncodePromptFile(std::move(header), std::move(images));
}

StoreMatch LookupBundle(const std::string& path, const KvIdentity& identity,
                        const KvSpec& spec,
                        std::span<const std::int32_t> tokens,
                        const Vault* vault) {
  StoreMatch match;
  const auto file = ReadStored(path, vault);
  if (!file.ok()) {
    match.miss_reason = file.error().message;
    return match;
  }
  const auto header = ParsePromptFile(file->bytes, path);
  if (!header.ok()) {
    match.miss_reason = header.error().message;
    return match;
  }
  const std::string difference = KeyDifference(*header, identity, spec);
  if (!difference.empty()) {
    match.miss_reason = path + ": " + difference;
    return match;
  }
  for (std::size_t i = 0; i < header->blocks.size(); ++i) {
    const auto rest = tokens.subspan(static_cast<std::size_t>(match.n_tokens));
    if (rest.empty()) break;
    const auto stored = header->BlockTokens(i);
    const std::size_t n_equal = static_cast<std::size_t>(
        std::mismatch(stored.begin(), stored.end(), rest.begin(), rest.end())
            .first -
        stored.begin());
    if (n_equal < stored.size()) {
      match.miss_reason =
          path + ": the stored prompt goes another way, or on, after token " +
          std::to_string(static_cast<std::size_t>(match.n_tokens) + n_equal);
      break;
    }
    const PromptEntry& entry = header->blocks[i];
    if (entry.image_at == 0) {
      match.miss_reason = path + ": a manifest, which does not hold its blocks";
      break;
    }
    const BlockQuery query{identity.model_id, identity.format_id,
                           header->root_id,   header->ParentOf(i),
                           entry.id,          stored};
    const auto payload = OpenBlockImage(
        file->bytes.subspan(entry.image_at, entry.image_bytes), spec, query,
        /*check_payload=*/true, path);
    if (!payload.ok()) {
      match.miss_reason = payload.error().message;
      match.warnings.push_back(payload.error().message + "; ignored");
      break;
    }
    match.n_tokens += static_cast<int>(stored.size());
    match.blocks.push_back(
        {entry.id, static_cast<int>(stored.size()), *payload, file->owner});
  }
  const bool whole = static_cast<std::size_t>(match.n_tokens) == tokens.size();
  if (whole) {
    match.miss_reason.clear();
  } else if (match.miss_reason.empty()) {
    match.miss_reason = path + ": the stored prompt ends after token " +
                        std::to_string(match.n_tokens);
  }
  return match;
}

Result<void> SaveBundle(const std::string& path, const KvIdentity& identity,
                        const KvSpec& spec,
                        std::span<const std::int32_t> tokens,
                        std::span<const BlockToSave> blocks,
                        FileOps* file_ops, const Vault* vault) {
  HEARTH_ASSIGN(const PromptFileParts file,
                EncodePrompt(identity, spec, tokens, blocks));
  if (file.images.size() * static_cast<std::size_t>(spec.block_tokens) <
      tokens.size()) {
    return {Code::kInvalidArgument, "a bundle needs all blocks of its prompt"};
  }
  return WriteBundle(path, file.parts,
                     file_ops ? *file_ops : FileOps::System(), vault);
}

Result<void> WriteBundle(const std::string& path,
                         std::span<const ByteSpan> parts, FileOps& ops,
                         const Vault* vault) {
  HEARTH_TRY(RefuseForeignFile(path));
  // A link is the user's wish: what it points to is replaced, not the link.
  std::error_code ignored, unresolved;
  const std::filesystem::path target =
      std::filesystem::is_symlink(path, ignored)
          ? std::filesystem::canonical(path, unresolved)
          : std::filesystem::path(path);
  const std::string folder = target.parent_path().string();
  const std::string name = target.filename().string();
  if (unresolved || name.empty() || name == "." || name == "..") {
    return {Code::kInvalidArgument, path + ": not a name for a file"};
  }
  HEARTH_ASSIGN(const Directory directory,
                Directory::Open(ops, folder.empty() ? "." : folder));
  SweepTemporariesOf(directory, name);
  std::vector<std::byte> sealed;
  HEARTH_ASSIGN(const auto written, ForDisk(vault, parts, sealed));
  return directory.Write(name, written);
}

}  // namespace hearth
