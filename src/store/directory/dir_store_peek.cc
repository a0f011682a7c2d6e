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

int DirStore::CountStored(const BlockChain& prompt, std::size_t first_block) {
  std::size_t next = first_block;
  const auto end = [&] { return static_cast<int>(prompt.BeginOf(next)); };
  const auto root = Root();
  const auto blocks = root.ok() ? root->Sub(kBlocksName) : root.error();
  if (!blocks.ok()) return end();
  const auto has = [&](const Digest& id) {
    const auto folder = blocks->Sub(BlockFolder(id));
    return folder.ok() && folder->Exists(BlockName(id));
  };
  while (next < prompt.n_full() && has(prompt[next].id)) ++next;
  if (next == prompt.size()) return end();
  const BlockRef rest = prompt[next];
  const std::size_t longest =
      std::min(rest.tokens.size(), prompt.block_tokens() - 1);
  for (std::size_t n = longest; n >= 1; --n) {
    if (has(ChildId(rest.parent, rest.tokens.first(n)))) {
      return end() + static_cast<int>(n);
    }
  }
  return end();
}

std::vector<std::vector<std::int32_t>> DirStore::RecentPrompts(
    const KvIdentity& identity, std::size_t n_max, const WantedPrompt& wanted) {
  std::vector<std::vector<std::int32_t>> prompts;
  const auto root = Root();
  const auto folder = root.ok() ? root->Sub(kPromptsName) : root.error();
  if (!folder.ok()) return prompts;
  const Digest root_id = RootId(identity);
  TokenReader reader(*root);
  for (const std::string& name :
       RecentManifests(*folder, identity.model_name, kManifestsMax)) {
    if (prompts.size() == n_max) break;
    const auto header = ReadManifest(*folder, name);
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
