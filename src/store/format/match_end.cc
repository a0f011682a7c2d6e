#include "store/format/match_end.h"

#include <algorithm>
#include <string>
#include <utility>

#include "store/format/block_pieces.h"
#include "store/format/state_image.h"

namespace hearth {
namespace {

// The match up to `end`. False when a block there cannot be cut: a quantised
// one's first tokens are not known in full precision any more.
Result<bool> CutMatch(const KvSpec& spec, const StateQuery& at_end,
                      StoreMatch& match) {
  const auto end = static_cast<int>(at_end.position);
  int at = match.first_token;
  std::size_t n_kept = 0;
  while (n_kept < match.blocks.size() &&
         at + match.blocks[n_kept].n_tokens <= end) {
    at += match.blocks[n_kept++].n_tokens;
  }
  if (at < end) {
    StoredBlock& block = match.blocks[n_kept];
    if (!CanBePiece(spec, static_cast<std::size_t>(block.n_tokens))) {
      return false;
    }
    HEARTH_ASSIGN(FileBytes start,
                  CutStart(spec, block.payload, block.n_tokens, end - at));
    block = {at_end.prefix.block_id, end - at, start.bytes,
             std::move(start.owner), false};
    ++n_kept;
  }
  match.blocks.resize(n_kept);
  match.n_tokens = end - match.first_token;
  match.n_tokens_remote = std::min(match.n_tokens_remote, match.n_tokens);
  return true;
}

}  // namespace

int MostTokensWithState(const BlockChain& prompt, const StoreMatch& match) {
  return std::min(match.end(), static_cast<int>(prompt.tokens().size()) - 1);
}

void EndAtState(const BlockChain& prompt, const KvSpec& spec,
                Result<std::optional<StoredState>> state, StoreMatch& match) {
  if (!state.ok()) {
    match.warnings.push_back(state.error().message);
    return;
  }
  if (!state->has_value()) return;
  StoredState& found = **state;
  const int n_blocks = match.end();
  const int n_max = MostTokensWithState(prompt, match);
  const auto cut = CutMatch(
      spec, StateQueryOf(prompt, static_cast<std::size_t>(found.n_tokens)),
      match);
  if (!cut.ok()) match.warnings.push_back(cut.error().message);
  if (!cut.ok() || !*cut) return;
  match.state = std::move(found);
  match.n_tokens_in_blocks = n_blocks - match.first_token;
  if (match.end() == n_max) return;
  match.miss_kind = MissKind::kState;
  match.miss_reason =
      "the states nearest below token " + std::to_string(n_blocks) +
      " are those behind token " + std::to_string(match.end()) +
      (match.miss_reason.empty() ? "" : "; " + match.miss_reason);
}

void EndWithoutState(StoreMatch& match) {
  if (match.n_tokens > 0) {
    match.miss_reason = "the blocks of " + std::to_string(match.end()) +
                        " tokens are stored, and no states behind them";
    match.miss_kind = MissKind::kState;
  }
  match.n_tokens_in_blocks = match.n_tokens;
  match.blocks.clear();
  match.n_tokens = match.n_tokens_remote = 0;
}

}  // namespace hearth
