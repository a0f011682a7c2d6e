// What DirStore knows without loading KV: which blocks are there, and which
// prompts.
#include <algorithm>

#include "store/directory/catalog.h"
#include "store/directory/dir_store.h"
#include "store/directory/layout.h"
#include "store/format/token_reader.h"

namespace hearth {
namespace {

// Manifests looked at, the last used first: a bound on what a lookup costs.
constexpr std::size_t kManifestsMax = 256;

}  // namespace

int DirStore::CountStored(const KvIdentity& identity, const KvSpec& spec,
                          std::span<const std::int32_t> tokens) {
  const auto root = Root();
  if (!root.ok()) return 0;
  const auto blocks = root->Sub(kBlocksName);
  if (!blocks.ok()) return 0;
  const auto step = static_cast<std::size_t>(spec.block_tokens);
  Digest parent = RootId(identity);
  std::size_t n = 0;
  for (; tokens.size() - n >= step; n += step) {
    parent = ChildId(parent, tokens.subspan(n, step));
    const auto folder = blocks->Sub(BlockFolder(parent));
    if (!folder.ok() || !folder->Exists(BlockName(parent))) break;
  }
  return static_cast<int>(n);
}

std::vector<std::vector<std::int32_t>> DirStore::RecentPrompts(
    const KvIdentity& identity, std::size_t n_max, const WantedPrompt& wanted) {
  std::vector<std::vector<std::int32_t>> prompts;
  const auto root = Root();
  if (!root.ok()) return prompts;
  const auto folder = root->Sub(kPromptsName);
  if (!folder.ok()) return prompts;
  auto entries = folder->List();
  if (!entries.ok()) return prompts;
  const std::string prefix = SanitizedName(identity.model_name) + "-";
  std::erase_if(*entries, [&](const DirectoryEntry& entry) {
    return !entry.is_file || !entry.name.starts_with(prefix) ||
           !entry.name.ends_with(kPromptSuffix);
  });
  std::sort(entries->begin(), entries->end(),
            [](const DirectoryEntry& a, const DirectoryEntry& b) {
              return a.mtime_ns > b.mtime_ns;
            });
  if (entries->size() > kManifestsMax) entries->resize(kManifestsMax);
  const Digest root_id = RootId(identity);
  TokenReader reader(*root);
  for (const DirectoryEntry& entry : *entries) {
    if (prompts.size() == n_max) break;
    const auto header = ReadManifest(*folder, entry.name);
    if (!header.ok() || header->root_id != root_id) continue;
    bool declined = false;
    auto tokens = reader.Read(*header, [&](auto leading) {
      // Once, with the first block: what follows does not change the answer.
      if (leading.size() == header->entries[0].end) declined = !wanted(leading);
      return !declined;
    });
    if (!declined && !tokens.empty()) prompts.push_back(std::move(tokens));
  }
  return prompts;
}

}  // namespace hearth
