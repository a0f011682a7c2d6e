#include "engine/session/found_prefix.h"

#include <algorithm>
#include <utility>

#include "base/stopwatch.h"
#include "cache/block_chain.h"

namespace hearth {

FoundPrefix FindPrefix(PromptCache& cache, const std::string& key_space,
                       const KvSpec& spec, std::span<const std::int32_t> tokens,
                       int n_have) {
  const Stopwatch clock;
  FoundPrefix found;
  found.match = cache.Lookup(key_space, spec, tokens, n_have);
  found.tier = cache.TierOf(found.match);
  const auto stored = tokens.first(static_cast<std::size_t>(found.match.end()));
  found.tokens.assign(stored.begin(), stored.end());
  found.lookup_ms = clock.ms();
  return found;
}

Digest RootIn(const Digest& chain_root, const std::string& key_space) {
  if (key_space.empty()) return chain_root;
  return Sha256()
      .Field("hearth key space")
      .Field(chain_root)
      .Field(key_space)
      .Finish();
}

std::vector<Digest> FullBlockIds(const Digest& chain_root,
                                 std::span<const std::int32_t> tokens,
                                 int block_tokens) {
  std::vector<Digest> ids;
  AddFullBlockIds(chain_root, tokens, static_cast<std::size_t>(block_tokens),
                  ids);
  return ids;
}

HeldPrefix HeldInMemory(const KvPlan& plan, const PrefixIds& ids) {
  HeldPrefix held;
  if (plan.pool() == nullptr) return held;
  const int step = plan.spec().block_tokens;
  const int n = plan.pool()->CountHeld(ids.full) * step;
  if (plan.states() == nullptr) {
    held.n_tokens = n;
    return held;
  }
  // A kept position has its own tail.
  const int n_max =
      std::min(n + step - 1, static_cast<int>(ids.tokens.size()) - 1);
  held.state =
      plan.states()->Longest(ids.root, ids.tokens, ids.full, step, n_max);
  if (held.state != nullptr) held.n_tokens = held.state->n_tokens;
  return held;
}

namespace {

// Stored blocks behind those that the sequence shares; false when some between
// are missing: whoever held them may have let go of them since.
Result<bool> AppendMatch(StoreMatch& match, KvSequence& kv) {
  const auto n_shared =
      static_cast<std::size_t>(kv.n_tokens() / kv.block_tokens());
  const auto n_before =
      static_cast<std::size_t>(match.first_token / kv.block_tokens());
  if (n_shared < n_before) return false;
  for (std::size_t i = n_shared - n_before; i < match.blocks.size(); ++i) {
    StoredBlock& block = match.blocks[i];
    HEARTH_TRY(kv.AppendStored(block.payload, block.n_tokens,
                               std::move(block.owner), block.is_mapped));
  }
  return true;
}

// From a kept position of another sequence, or from stored states.
Result<RestoredKv> RestoreWithState(const KvPlan& plan, const PrefixIds& ids,
                                    StoreMatch&& match) {
  RestoredKv restored;
  restored.sequence = plan.NewSequence();
  KvSequence& kv = *restored.sequence;
  const HeldPrefix held = HeldInMemory(plan, ids);
  const bool in_memory = held.state != nullptr && held.n_tokens >= match.end();
  const int n = in_memory ? held.n_tokens : match.end();
  const auto n_full = static_cast<std::size_t>(n / kv.block_tokens());
  (void)kv.AppendShared(std::span(ids.full).first(n_full));
  restored.n_shared_tokens = kv.n_tokens();
  if (in_memory && kv.n_tokens() == n / kv.block_tokens() * kv.block_tokens()) {
    const StateTail& tail = held.state->tail;
    if (!tail.payload.empty()) {
      HEARTH_TRY(kv.AppendStored(tail.payload, n % kv.block_tokens(),
                                 tail.owner, /*mapped=*/false));
    }
    restored.n_shared_tokens = n;
    restored.state_in_memory = true;
    kv.RestoreState(held.state);
    return restored;
  }
  if (match.state.has_value() && !in_memory) {
    auto here = std::make_shared<StateCheckpoint>();
    here->n_tokens = n;
    StoredState& state = *match.state;
    here->slab = StateSlab::Of(state.payload, std::move(state.owner),
                               state.is_mapped, plan.pool());
    if (n % kv.block_tokens() != 0) {
      here->tail = {match.blocks.back().payload, match.blocks.back().owner};
    }
    HEARTH_ASSIGN(const bool whole, AppendMatch(match, kv));
    if (whole && kv.n_tokens() == n) {
      kv.RestoreState(std::move(here));
      return restored;
    }
  }
  return RestoredKv{plan.NewSequence(), 0, false};
}

}  // namespace

Result<RestoredKv> RestoreKv(const KvPlan& plan, const PrefixIds& ids,
                             StoreMatch&& match) {
  if (!plan.spec().states.empty()) {
    return RestoreWithState(plan, ids, std::move(match));
  }
  RestoredKv restored;
  restored.sequence = plan.NewSequence();
  KvSequence& kv = *restored.sequence;
  (void)kv.AppendShared(ids.full);
  restored.n_shared_tokens = kv.n_tokens();
  HEARTH_TRY(AppendMatch(match, kv));
  return restored;
}

}  // namespace hearth
