#include "store/format/token_reader.h"

#include <string>

#include "base/files/vault.h"
#include "store/directory/layout.h"

namespace hearth {

std::vector<std::int32_t> TokenReader::Read(const PromptHeader& prompt,
                                            const GoOn& go_on) {
  std::vector<std::int32_t> tokens;
  for (std::size_t i = 0; i < prompt.entries.size(); ++i) {
    const auto& block = TokensOf(prompt, i);
    const auto first =
        static_cast<std::size_t>(prompt.FirstOf(i) - prompt.BlockStart(i));
    if (first >= block.size()) break;
    tokens.insert(tokens.end(),
                  block.begin() + static_cast<std::ptrdiff_t>(first),
                  block.end());
    if (tokens.size() != prompt.entries[i].end) break;
    if (go_on && !go_on(tokens)) break;
  }
  return tokens;
}

const std::vector<std::int32_t>& TokenReader::TokensOf(
    const PromptHeader& prompt, std::size_t index) {
  const Digest& id = prompt.entries[index].id;
  const auto [found, is_new] = known_.try_emplace(id);
  if (!is_new) return found->second;
  const auto blocks = root_.Sub(kBlocksName);
  if (!blocks.ok()) return found->second;
  auto header = ReadBlockHeader(*blocks, id);
  if (!header.ok()) return found->second;
  const BlockQuery query{prompt.model_id,
                         prompt.format_id,
                         prompt.root_id,
                         prompt.ParentOf(index),
                         id,
                         header->tokens};
  if (CheckBlockHeader(*header, query, "block").ok() &&
      header->tokens.size() ==
          prompt.entries[index].end - prompt.BlockStart(index)) {
    found->second = std::move(header->tokens);
  }
  return found->second;
}

Result<BlockHeader> ReadBlockHeader(const Directory& blocks, const Digest& id) {
  HEARTH_ASSIGN(const Directory folder, blocks.Sub(BlockFolder(id)));
  return ReadBlockHeader(folder, BlockName(id));
}

namespace {

Result<BlockHeader> ReadHeader(ImageKind kind, const Directory& folder,
                               const std::string& name) {
  if (folder.vault() != nullptr) {
    HEARTH_ASSIGN(const FileBytes file,
                  ReadStored(folder, name, kImageBytesMax));
    return ParseImageHeader(kind, file.bytes, file.bytes.size(), name);
  }
  HEARTH_ASSIGN(const DirectoryEntry entry, folder.Stat(name));
  HEARTH_ASSIGN(auto start, folder.ReadStart(name, kImageAlign));
  HEARTH_TRY(CheckKey(start, nullptr, folder.PathOf(name)));
  if (const std::size_t stated = StatedHeaderBytes(start);
      stated > start.size() && stated <= kBlockHeaderBytesMax) {
    HEARTH_ASSIGN(start, folder.ReadStart(name, stated));
  }
  return ParseImageHeader(kind, start, entry.size, name);
}

}  // namespace

Result<BlockHeader> ReadBlockHeader(const Directory& folder,
                                    const std::string& name) {
  return ReadHeader(ImageKind::kBlock, folder, name);
}

Result<BlockHeader> ReadStateHeader(const Directory& folder,
                                    const std::string& name) {
  return ReadHeader(ImageKind::kState, folder, name);
}

}  // namespace hearth
