#include "store/format/bundle.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "base/output.h"
#include "store/directory/root.h"
#include "store/files/directory.h"
#include "store/format/block_image.h"
#include "store/format/block_pieces.h"
#include "store/format/vault.h"

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

Result<PromptFileParts> EncodeBundle(const KvIdentity& identity,
                                     const KvSpec& spec,
                                     std::span<const std::int32_t> tokens,
                                     std::span<const BlockToSave> blocks) {
  PromptHeader header = HeaderOf(identity, spec);
  const auto step = static_cast<std::size_t>(spec.block_tokens);
  const auto chain = ChainIds(identity, tokens, spec.block_tokens);
  if (blocks.size() != chain.size()) {
    return {Code::kInvalidArgument, "a bundle needs all blocks of its prompt"};
  }
  std::vector<PromptImage> images;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const BlockToSave& block = blocks[i];
    const auto expected =
        tokens.subspan(i * step, std::min(step, tokens.size() - i * step));
    if (block.id != chain[i] ||
        block.parent != (i == 0 ? header.root_id : chain[i - 1]) ||
        !std::equal(block.tokens.begin(), block.tokens.end(), expected.begin(),
                    expected.end())) {
      return {Code::kInvalidArgument,
              "block " + std::to_string(i) + " is not the prompt's"};
    }
    HEARTH_ASSIGN(
        std::vector<std::byte> image_header,
        EncodeBlockHeader(identity, header.root_id, spec, block.parent,
                          block.id, block.tokens, block.payload));
    images.push_back({std::move(image_header), block.payload});
    header.entries.push_back({block.id, i * step + expected.size(), 0, 0});
  }
  return EncodePromptFile(std::move(header), std::move(images));
}

namespace {

// The block that ends with entry `last` and begins with entry `first`.
Result<StoredBlock> OpenBlockOf(const PromptHeader& prompt, std::size_t first,
                                std::size_t last, const FileBytes& file,
                                const KvSpec& spec,
                                std::span<const std::int32_t> tokens,
                                bool is_mapped, const std::string& what) {
  const std::uint64_t start = prompt.FirstOf(first);
  std::vector<Piece> pieces;
  for (std::size_t i = first; i <= last; ++i) {
    const PromptEntry& entry = prompt.entries[i];
    const auto n = static_cast<std::size_t>(entry.end - start);
    const BlockQuery query{prompt.model_id, prompt.format_id,
                           prompt.root_id,  prompt.ParentOf(i),
                           entry.id,        tokens.first(n)};
    HEARTH_ASSIGN(
        const OpenImage image,
        OpenBlockImage(file.bytes.subspan(entry.image_at, entry.image_bytes),
                       spec, query, /*check_payload=*/true, what));
    if (static_cast<std::uint64_t>(image.first_token) !=
        prompt.FirstOf(i) - start) {
      return {Code::kCorrupt, what + ": another block than the prompt's"};
    }
    pieces.push_back({image.payload, image.first_token, static_cast<int>(n)});
  }
  StoredBlock block{prompt.entries[last].id, pieces.back().end,
                    pieces[0].payload, file.owner, is_mapped && first == last};
  if (pieces.size() == 1) return block;
  HEARTH_ASSIGN(FileBytes joined, JoinPieces(spec, pieces));
  block.payload = joined.bytes;
  block.owner = std::move(joined.owner);
  return block;
}

}  // namespace

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
  if (!header->holds_images()) {
    match.miss_reason = path + ": a manifest, which does not hold its blocks";
    return match;
  }
  std::size_t first = 0;  // entry that the next block begins with
  for (std::size_t i = 0; i < header->entries.size(); ++i) {
    if (!header->EndsBlock(i)) continue;
    const auto rest = tokens.subspan(static_cast<std::size_t>(match.n_tokens));
    if (rest.empty()) break;
    const PromptEntry& entry = header->entries[i];
    const ByteSpan bytes =
        file->bytes.subspan(entry.image_at, entry.image_bytes);
    const auto image = ParseBlockHeader(bytes, bytes.size(), path);
    if (!image.ok()) {
      match.miss_reason = image.error().message;
      match.warnings.push_back(image.error().message + "; ignored");
      break;
    }
    const auto& stored = image->tokens;
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
    auto block =
        stored.size() == entry.end - header->BlockStart(i)
            ? OpenBlockOf(*header, first, i, *file, spec, stored,
                          vault == nullptr, path)
            : Error{Code::kCorrupt, path + ": another block than the prompt's"};
    if (!block.ok()) {
      match.miss_reason = block.error().message;
      match.warnings.push_back(block.error().message + "; ignored");
      break;
    }
    match.n_tokens += block->n_tokens;
    match.blocks.push_back(std::move(block).value());
    first = i + 1;
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

Result<void> CheckBundleTarget(const std::string& path) {
  HEARTH_TRY(CheckOutput(path, {.replace = true}));
  return RefuseForeignFile(path);
}

Result<void> SaveBundle(const std::string& path, const KvIdentity& identity,
                        const KvSpec& spec,
                        std::span<const std::int32_t> tokens,
                        std::span<const BlockToSave> blocks, FileOps* file_ops,
                        const Vault* vault) {
  HEARTH_ASSIGN(const PromptFileParts file,
                EncodeBundle(identity, spec, tokens, blocks));
  return WriteBundle(path, file.parts, file_ops ? *file_ops : FileOps::System(),
                     vault);
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
