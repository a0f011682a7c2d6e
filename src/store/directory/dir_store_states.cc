// States in a store: each is a file of its own, named by the prefix that it is
// behind.
#include <algorithm>
#include <utility>

#include "store/directory/dir_store.h"
#include "store/directory/layout.h"
#include "store/directory/quarantine.h"
#include "store/directory/state_names.h"
#include "store/format/match_end.h"
#include "store/format/token_reader.h"

namespace hearth {
std::optional<StoredState> DirStore::OpenState(
    const Directory& root, const KvSpec& spec, const StateQuery& query,
    std::vector<std::string>& warnings) const {
  const StorePath path = StatePath(query.prefix.block_id, query.position);
  const auto folder = OpenFolder(root, path.folder);
  if (!folder.ok()) return std::nullopt;
  const std::string what = folder->PathOf(path.name);
  const auto open = [&]() -> Result<StoredState> {
    HEARTH_ASSIGN(MappedFile mapped, folder->Map(path.name));
    auto file = ReadStored(std::move(mapped), options_.vault.get(),
                           StateImageBytesMax(spec));
    if (!file.ok() && options_.vault != nullptr &&
        file.error().code == Code::kIncompatible) {
      return {Code::kCorrupt, file.error().message};
    }
    if (!file.ok()) return file.error();
    HEARTH_ASSIGN(
        const ByteSpan payload,
        OpenStateImage(file->bytes, spec, query, options_.verify, what));
    return StoredState{static_cast<int>(query.position), payload, file->owner,
                       options_.vault == nullptr};
  };
  auto state = open();
  if (state.ok()) {
    (void)folder->Touch(path.name, NowNs());
    return std::move(*state);
  }
  if (state.error().code == Code::kNotFound) return std::nullopt;
  const bool moved =
      IsDefect(state.error()) && SetAside(root, *folder, path.name);
  warnings.push_back(state.error().message +
                     (moved ? "; moved to quarantine" : "; ignored"));
  return std::nullopt;
}

int DirStore::NewestState(const BlockChain& prompt, int n_max) const {
  const auto root = Root();
  if (!root.ok() || n_max < 1) return 0;
  const auto states = StatesOf(*root, prompt, static_cast<std::size_t>(n_max));
  return states.empty() ? 0 : static_cast<int>(states.back().end);
}

void DirStore::AttachState(const BlockChain& prompt, const KvSpec& spec,
                           StoreMatch& match) {
  if (spec.states.empty()) return;
  const int n_max = MostTokensWithState(prompt, match);
  std::vector<PromptEntry> states;
  const auto root = Root();
  if (root.ok() && n_max > match.first_token) {
    states = StatesOf(*root, prompt, static_cast<std::size_t>(n_max));
  }
  // The newest first; a damaged one is a shorter match.
  for (; !states.empty() && !match.state.has_value(); states.pop_back()) {
    const auto n = static_cast<std::size_t>(states.back().end);
    if (static_cast<int>(n) <= match.first_token) break;
    EndAtState(prompt, spec,
               OpenState(*root, spec, StateQueryOf(prompt, n), match.warnings),
               match);
  }
  if (!match.state.has_value()) EndWithoutState(match);
}

Result<void> DirStore::SaveState(const BlockChain& prompt, const KvSpec& spec,
                                 std::size_t n_tokens, ByteSpan payload) {
  if (n_tokens < 1 || n_tokens > prompt.tokens().size()) {
    return {Code::kInvalidArgument, "more tokens than the prompt has"};
  }
  HEARTH_ASSIGN(const BudgetedWriter writer, Writer());
  const StateQuery query = StateQueryOf(prompt, n_tokens);
  const StorePath path = StatePath(query.prefix.block_id, n_tokens);
  if (const auto folder = OpenFolder(writer.root(), path.folder); folder.ok()) {
    const auto header = ReadStateHeader(*folder, path.name);
    // Of a later version: leave it, rather than fight over the name.
    const bool stored = header.ok()
                            ? CheckStateHeader(*header, query, "states").ok()
                            : header.error().code == Code::kIncompatible;
    if (stored) {
      (void)folder->Touch(path.name, NowNs());
      return {};
    }
  }
  HEARTH_ASSIGN(const std::vector<std::byte> header,
                EncodeStateHeader(spec, query, payload));
  const ByteSpan parts[] = {header, payload};
  std::vector<std::byte> sealed;
  HEARTH_ASSIGN(auto on_disk, ForDisk(writer.root().vault(), parts, sealed));
  Protection protection;
  ProtectChain(query.prefix.parent_id, protection);
  for (std::size_t i = (n_tokens - 1) / prompt.block_tokens() + 1; i-- > 0;) {
    protection.blocks.insert(prompt[i].id);
  }
  protection.blocks.insert(query.prefix.block_id);
  const FileToWrite file{path, std::move(on_disk)};
  return writer.Write(std::span(&file, 1), protection);
}

void DirStore::DropState(const BlockChain& prompt, std::size_t n_tokens) {
  if (n_tokens < 1 || n_tokens > prompt.tokens().size()) return;
  const auto root = Root();
  if (!root.ok()) return;
  const StorePath path =
      StatePath(StateQueryOf(prompt, n_tokens).prefix.block_id, n_tokens);
  const auto folder = OpenFolder(*root, path.folder);
  // The sum of the store's bytes stays too high until the next scan, which is
  // how all deletion is noticed.
  if (folder.ok()) (void)folder->Remove(path.name);
}

}  // namespace hearth
