// Where the match of a spec with states ends: where the states are known.
#pragma once

#include <optional>

#include "hearth/result.h"
#include "store/kv_store.h"

namespace hearth {

// The most tokens that states are of use behind: the match's, and one less than
// the prompt's, whose last token is computed by whoever goes on.
int MostTokensWithState(const BlockChain& prompt, const StoreMatch& match);

// Ends the match, which reaches as far, where the states are. When they are an
// error, or a quantised block cannot be cut there, nothing changes but for a
// warning. `state` nothing: there is none.
void EndAtState(const BlockChain& prompt, const KvSpec& spec,
                Result<std::optional<StoredState>> state, StoreMatch& match);

// No states were found: blocks alone are of no use.
void EndWithoutState(StoreMatch& match);

}  // namespace hearth
