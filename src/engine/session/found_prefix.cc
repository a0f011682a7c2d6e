#include "engine/session/found_prefix.h"

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

Result<RestoredKv> RestoreKv(const KvPlan& plan, std::span<const Digest> ids,
                             StoreMatch&& match) {
  RestoredKv restored;
  restored.sequence = plan.NewSequence();
  KvSequence& kv = *restored.sequence;
  const auto n_shared = static_cast<std::size_t>(kv.AppendShared(ids));
  restored.n_shared_tokens = kv.n_tokens();
  const auto n_before =
      static_cast<std::size_t>(match.first_token / kv.block_tokens());
  // Whoever held what the match stands behind may have let go of it since.
  if (n_shared < n_before) return restored;
  for (std::size_t i = n_shared - n_before; i < match.blocks.size(); ++i) {
    StoredBlock& block = match.blocks[i];
    HEARTH_TRY(kv.AppendStored(block.payload, block.n_tokens,
                               std::move(block.owner), block.is_mapped));
  }
  return restored;
}

}  // namespace hearth
