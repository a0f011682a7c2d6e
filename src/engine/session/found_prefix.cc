#include "engine/session/found_prefix.h"

#include <utility>

#include "base/stopwatch.h"

namespace hearth {

FoundPrefix FindPrefix(PromptCache& cache, const KvSpec& spec,
                       std::span<const std::int32_t> tokens, int n_have) {
  const Stopwatch clock;
  FoundPrefix found;
  found.match = cache.Lookup(spec, tokens, n_have);
  found.tier = cache.TierOf(found.match);
  const auto stored =
      tokens.first(static_cast<std::size_t>(found.match.n_tokens));
  found.tokens.assign(stored.begin(), stored.end());
  found.lookup_ms = clock.ms();
  return found;
}

Result<std::unique_ptr<KvSequence>> RestoreKv(const KvPlan& plan,
                                              StoreMatch&& match) {
  HEARTH_ASSIGN(auto sequence, plan.NewSequence());
  for (StoredBlock& block : match.blocks) {
    HEARTH_TRY(sequence->AppendStored(block.payload, block.n_tokens,
                                      std::move(block.owner), block.is_mapped));
  }
  return sequence;
}

}  // namespace hearth
