#include "store/bundle/bundle_store.h"

#include <algorithm>
#include <utility>

#include "store/format/block_image.h"
#include "store/format/block_pieces.h"
#include "store/format/match_end.h"
#include "store/format/state_image.h"

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

// The tokens of the block that entry `index` ends, as its image says.
Result<std::vector<std::int32_t>> TokensOf(const OpenBundle& bundle,
                                           std::size_t index,
                                           const std::string& path) {
  const PromptEntry& entry = bundle.header.entries[index];
  const ByteSpan bytes =
      bundle.file.bytes.subspan(entry.image_at, entry.image_bytes);
  HEARTH_ASSIGN(BlockHeader image, ParseBlockHeader(bytes, bytes.size(), path));
  if (image.tokens.size() != entry.end - bundle.header.BlockStart(index)) {
    return {Code::kCorrupt, path + ": another block than the prompt's"};
  }
  return std::move(image.tokens);
}

// The block that ends with entry `last` and begins with entry `first`.
Result<StoredBlock> OpenBlockOf(const OpenBundle& bundle, std::size_t first,
                                std::size_t last, const KvSpec& spec,
                                std::span<const std::int32_t> tokens,
                                const std::string& what) {
  const PromptHeader& prompt = bundle.header;
  const std::uint64_t start = prompt.FirstOf(first);
  std::vector<Piece> pieces;
  for (std::size_t i = first; i <= last; ++i) {
    const PromptEntry& entry = prompt.entries[i];
    const auto n = static_cast<std::size_t>(entry.end - start);
    const BlockQuery query{prompt.model_id, prompt.format_id,
                           prompt.root_id,  prompt.ParentOf(i),
                           entry.id,        tokens.first(n)};
    HEARTH_ASSIGN(const OpenImage image,
                  OpenBlockImage(bundle.file.bytes.subspan(entry.image_at,
                                                           entry.image_bytes),
                                 spec, query, /*check_payload=*/true, what));
    if (static_cast<std::uint64_t>(image.first_token) !=
        prompt.FirstOf(i) - start) {
      return {Code::kCorrupt, what + ": another block than the prompt's"};
    }
    pieces.push_back({image.payload, image.first_token, static_cast<int>(n)});
  }
  StoredBlock block{prompt.entries[last].id, pieces.back().end,
                    pieces[0].payload, bundle.file.owner,
                    bundle.is_mapped && first == last};
  if (pieces.size() == 1) return block;
  HEARTH_ASSIGN(FileBytes joined, JoinPieces(spec, pieces));
  block.payload = joined.bytes;
  block.owner = std::move(joined.owner);
  return block;
}

// State `index` of the bundle, if it is one of the prompt.
Result<std::optional<StoredState>> OpenStateOf(const OpenBundle& bundle,
                                               std::size_t index,
                                               const BlockChain& prompt,
                                               const KvSpec& spec,
                                               const std::string& what) {
  const PromptEntry& entry = bundle.header.states[index];
  const StateQuery query =
      StateQueryOf(prompt, static_cast<std::size_t>(entry.end));
  if (query.prefix.block_id != entry.id) return std::optional<StoredState>();
  HEARTH_ASSIGN(const ByteSpan payload,
                OpenStateImage(bundle.file.bytes.subspan(entry.image_at,
                                                         entry.image_bytes),
                               spec, query, /*check_payload=*/true, what));
  return std::optional<StoredState>(StoredState{static_cast<int>(entry.end),
                                                payload, bundle.file.owner,
                                                bundle.is_mapped});
}

// Appends the prompt's blocks that the bundle has, and what it has of the one
// where they part.
void Match(const OpenBundle& bundle, const BlockChain& prompt,
           const KvSpec& spec, const std::string& path, StoreMatch& match) {
  const PromptHeader& header = bundle.header;
  const auto fail = [&](const Error& error) {
    match.miss_reason = error.message;
    match.miss_kind = MissKind::kDefect;
    match.warnings.push_back(error.message + "; ignored");
  };
  std::size_t first = 0;  // entry that the next block begins with
  for (std::size_t i = 0; i < header.entries.size(); ++i) {
    if (!header.EndsBlock(i)) continue;
    const auto rest =
        prompt.tokens().subspan(static_cast<std::size_t>(match.n_tokens));
    if (rest.empty()) return;
    const auto stored = TokensOf(bundle, i, path);
    if (!stored.ok()) return fail(stored.error());
    const auto n_equal = static_cast<std::size_t>(
        std::mismatch(stored->begin(), stored->end(), rest.begin(), rest.end())
            .first -
        stored->begin());
    const bool parts = n_equal < stored->size();
    const auto end = static_cast<std::size_t>(match.n_tokens) + n_equal;
    if (parts && (n_equal == 0 || !CanBePiece(spec, stored->size()))) {
      match.miss_reason =
          path + ": the stored prompt goes another way, or on, after token " +
          std::to_string(end);
      return;
    }
    auto block = OpenBlockOf(bundle, first, i, spec, *stored, path);
    if (!block.ok()) return fail(block.error());
    if (parts) {
      auto cut = CutStart(spec, block->payload, block->n_tokens,
                          static_cast<int>(n_equal));
      if (!cut.ok()) return fail(cut.error());
      const Digest parent = prompt.ParentOf(match.blocks.size());
      *block = {ChildId(parent, rest.first(n_equal)), static_cast<int>(n_equal),
                cut->bytes, std::move(cut->owner), false};
      match.miss_reason = path +
                          ": the stored prompt goes another way, or on,"
                          " after token " +
                          std::to_string(end);
    }
    match.n_tokens += block->n_tokens;
    match.blocks.push_back(std::move(*block));
    if (parts) return;
    first = i + 1;
  }
}

}  // namespace

Result<std::unique_ptr<KvStore>> KvStore::OpenFile(
    const std::string& path, const StoreOptions& options) {
  HEARTH_TRY(CheckBundleTarget(
      path, options.file_ops ? *options.file_ops : FileOps::System()));
  return std::unique_ptr<KvStore>(std::make_unique<BundleStore>(path, options));
}

BundleStore::BundleStore(std::string path, const StoreOptions& options)
    : path_(std::move(path)),
      options_(options),
      ops_(options.file_ops ? *options.file_ops : FileOps::System()) {}

StoreMatch BundleStore::Lookup(const BlockChain& prompt, const KvSpec& spec,
                               std::size_t first_block) {
  StoreMatch match;
  match.tier = "file";
  match.first_token = static_cast<int>(prompt.BeginOf(first_block));
  const auto bundle = ReadBundle(path_, options_.vault.get());
  if (!bundle.ok()) {
    match.miss_reason = bundle.error().message;
    if (bundle.error().code != Code::kNotFound) {
      match.miss_kind = MissKind::kDefect;
    }
    return match;
  }
  const std::string difference =
      KeyDifference(bundle->header, prompt.identity(), spec);
  if (!difference.empty()) {
    match.miss_reason = path_ + ": " + difference;
    match.miss_kind = MissKind::kIncompatible;
    return match;
  }
  StoreMatch all;
  Match(*bundle, prompt, spec, path_, all);
  if (!spec.states.empty()) {
    const int n_max = MostTokensWithState(prompt, all);
    const std::vector<PromptEntry>& states = bundle->header.states;
    for (std::size_t i = states.size(); i-- > 0 && !all.state.has_value();) {
      if (static_cast<int>(states[i].end) > n_max) continue;
      EndAtState(prompt, spec, OpenStateOf(*bundle, i, prompt, spec, path_),
                 all);
    }
    if (!all.state.has_value()) EndWithoutState(all);
  }
  match.miss_reason = std::move(all.miss_reason);
  match.miss_kind = all.miss_kind;
  match.warnings = std::move(all.warnings);
  for (std::size_t i = first_block; i < all.blocks.size(); ++i) {
    match.n_tokens += all.blocks[i].n_tokens;
    match.blocks.push_back(std::move(all.blocks[i]));
  }
  if (match.n_tokens > 0) match.state = std::move(all.state);
  match.n_tokens_in_blocks =
      std::max(0, all.n_tokens_in_blocks - match.first_token);
  // Of a model with states all but the last token is all that there can be.
  const int n_all = static_cast<int>(prompt.tokens().size()) -
                    (match.state.has_value() ? 1 : 0);
  if (match.end() >= n_all) {
    match.miss_reason.clear();
  } else if (match.miss_reason.empty()) {
    match.miss_reason = path_ + ": the stored prompt ends after token " +
                        std::to_string(all.n_tokens);
  }
  return match;
}

int BundleStore::CountStored(const BlockChain& prompt,
                             std::size_t first_block) {
  const auto from = static_cast<int>(prompt.BeginOf(first_block));
  const auto bundle = ReadBundle(path_, options_.vault.get());
  if (!bundle.ok() || bundle->header.root_id != prompt.root_id()) return from;
  std::size_t next = 0;
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < bundle->header.entries.size(); ++i) {
    if (!bundle->header.EndsBlock(i)) continue;
    const PromptEntry& entry = bundle->header.entries[i];
    if (next == prompt.size() || entry.id != prompt[next].id) {
      // Where they part inside a block is for a lookup to see.
      if (next < prompt.size()) end += prompt[next].tokens.size();
      break;
    }
    end = entry.end;
    ++next;
  }
  return std::max(from, static_cast<int>(end));
}

std::vector<std::vector<std::int32_t>> BundleStore::RecentPrompts(
    const KvIdentity& identity, std::size_t n_max, const WantedPrompt& wanted) {
  const auto bundle = ReadBundle(path_, options_.vault.get());
  if (n_max == 0 || !bundle.ok() ||
      bundle->header.root_id != RootId(identity)) {
    return {};
  }
  std::vector<std::int32_t> tokens;
  for (std::size_t i = 0; i < bundle->header.entries.size(); ++i) {
    if (!bundle->header.EndsBlock(i)) continue;
    const auto block = TokensOf(*bundle, i, path_);
    if (!block.ok()) break;
    const bool is_first = tokens.empty();
    tokens.insert(tokens.end(), block->begin(), block->end());
    if (is_first && !wanted(tokens)) return {};
  }
  if (tokens.empty()) return {};
  return {std::move(tokens)};
}

Result<void> BundleStore::SaveBlocks(const BlockChain& prompt,
                                     const KvSpec& spec,
                                     std::size_t first_block,
                                     std::span<const ByteSpan> payloads) {
  if (first_block + payloads.size() > prompt.size()) {
    return {Code::kInvalidArgument, "more blocks than the prompt has"};
  }
  const MutexLock lock(mutex_);
  for (std::size_t i = 0; i < payloads.size(); ++i) {
    auto& kept = pending_[prompt[first_block + i].id];
    pending_bytes_ += payloads[i].size() - kept.size();
    kept.assign(payloads[i].begin(), payloads[i].end());
  }
  if (pending_bytes_ < file_bytes_) return {};
  const std::size_t end = prompt.BeginOf(first_block + payloads.size());
  // A block of the prompt that is nowhere is an error when the whole is saved.
  const auto written = WriteFile(prompt.First(end), spec);
  return !written.ok() && written.error().code == Code::kNotFound
             ? Result<void>()
             : written;
}

// In memory until the prompt is saved whole.
Result<void> BundleStore::SaveState(const BlockChain& prompt, const KvSpec&,
                                    std::size_t n_tokens, ByteSpan payload) {
  if (n_tokens < 1 || n_tokens > prompt.tokens().size()) {
    return {Code::kInvalidArgument, "more tokens than the prompt has"};
  }
  const MutexLock lock(mutex_);
  pending_states_[StateQueryOf(prompt, n_tokens).prefix.block_id] = {
      n_tokens, {payload.begin(), payload.end()}};
  return {};
}

void BundleStore::DropState(const BlockChain& prompt, std::size_t n_tokens) {
  if (n_tokens < 1 || n_tokens > prompt.tokens().size()) return;
  const MutexLock lock(mutex_);
  const Digest id = StateQueryOf(prompt, n_tokens).prefix.block_id;
  pending_states_.erase(id);
  dropped_states_.insert(id);
}

// Those that the file holds, and those in memory that are of this prompt.
std::map<std::size_t, ByteSpan> BundleStore::StatesOf(
    const BlockChain& prompt, std::span<const StoredState> in_file) const {
  std::map<std::size_t, ByteSpan> states;
  for (const StoredState& state : in_file) {
    const auto n = static_cast<std::size_t>(state.n_tokens);
    if (dropped_states_.contains(StateQueryOf(prompt, n).prefix.block_id)) {
      continue;
    }
    states[n] = state.payload;
  }
  for (const auto& [id, state] : pending_states_) {
    if (state.n_tokens <= prompt.tokens().size() &&
        StateQueryOf(prompt, state.n_tokens).prefix.block_id == id) {
      states[state.n_tokens] = state.payload;
    }
  }
  return states;
}

Result<void> BundleStore::SaveManifest(const BlockChain& prompt,
                                       const KvSpec& spec, const std::string&) {
  const MutexLock lock(mutex_);
  return WriteFile(prompt, spec);
}

Result<void> BundleStore::WriteFile(const BlockChain& prompt,
                                    const KvSpec& spec) {
  if (stop_) return {Code::kCancelled, "saving was given up"};
  StoreMatch old;  // keeps the images alive
  std::vector<StoredState> old_states;
  if (const auto bundle = ReadBundle(path_, options_.vault.get());
      bundle.ok() &&
      KeyDifference(bundle->header, prompt.identity(), spec).empty()) {
    Match(*bundle, prompt, spec, path_, old);
    for (std::size_t i = 0; i < bundle->header.states.size(); ++i) {
      if (bundle->header.states[i].end > prompt.tokens().size()) break;
      auto state = OpenStateOf(*bundle, i, prompt, spec, path_);
      if (state.ok() && state->has_value()) {
        old_states.push_back(std::move(**state));
      }
    }
  }
  PromptHeader header = HeaderOf(prompt.identity(), spec);
  std::vector<PromptImage> images;
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < prompt.size(); ++i) {
    const BlockRef block = prompt[i];
    const auto pending = pending_.find(block.id);
    ByteSpan payload;
    if (pending != pending_.end()) {
      payload = pending->second;
    } else if (i < old.blocks.size() && old.blocks[i].id == block.id) {
      payload = old.blocks[i].payload;
    } else {
      return {Code::kNotFound, path_ + ": block " + std::to_string(i) +
                                   " of the prompt is not there any more"};
    }
    HEARTH_ASSIGN(
        std::vector<std::byte> image_header,
        EncodeBlockHeader(prompt.identity(), prompt.root_id(), spec,
                          block.parent, block.id, block.tokens, payload));
    images.push_back({std::move(image_header), payload});
    header.entries.push_back({block.id, prompt.BeginOf(i + 1), 0, 0});
    bytes += payload.size();
  }
  for (const auto& [n, payload] : StatesOf(prompt, old_states)) {
    const StateQuery query = StateQueryOf(prompt, n);
    HEARTH_ASSIGN(std::vector<std::byte> image_header,
                  EncodeStateHeader(spec, query, payload));
    images.push_back({std::move(image_header), payload});
    header.states.push_back({query.prefix.block_id, n, 0, 0});
  }
  HEARTH_ASSIGN(const PromptFileParts file,
                EncodePromptFile(std::move(header), std::move(images)));
  HEARTH_TRY(WriteBundle(path_, file.parts, ops_, options_.vault.get()));
  file_bytes_ = bytes;
  pending_.clear();
  pending_states_.clear();
  dropped_states_.clear();
  pending_bytes_ = 0;
  return {};
}

}  // namespace hearth
