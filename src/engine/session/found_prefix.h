// A prompt's beginning as the prompt cache has it: looked for on any thread,
// then made a sequence of.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/kv_plan.h"
#include "engine/prompt_cache/prompt_cache.h"

namespace hearth {

struct FoundPrefix {
  StoreMatch match;
  const char* tier = "none";
  double lookup_ms = 0;
  std::vector<std::int32_t> tokens;  // [match.end()]
};

// As PromptCache::Lookup for the first `n_have` tokens. Waits for files and the
// network, for no forward step.
FoundPrefix FindPrefix(PromptCache& cache, const std::string& key_space,
                       const KvSpec& spec, std::span<const std::int32_t> tokens,
                       int n_have);

// What the first block of a sequence of this key space stands behind.
Digest RootIn(const Digest& chain_root, const std::string& key_space);

// Chain ids of the full blocks of `tokens`.
std::vector<Digest> FullBlockIds(const Digest& chain_root,
                                 std::span<const std::int32_t> tokens,
                                 int block_tokens);

// A prompt's tokens and what its blocks are found by.
struct PrefixIds {
  Digest root;
  std::span<const std::int32_t> tokens;
  std::vector<Digest> full;  // of the full blocks
};

// What sequences of the engine hold of the prompt: full blocks or, of a spec
// with states, a kept position and all blocks before it, which leaves the
// prompt's last token to be computed.
struct HeldPrefix {
  int n_tokens = 0;
  StateCheckpointPtr state;  // null without states
};
HeldPrefix HeldInMemory(const KvPlan& plan, const PrefixIds& ids);

// A new sequence of what sequences of the engine hold and of what the store
// had, whichever goes further: a failed load touches no live one.
// kResourceFull, kIo.
struct RestoredKv {
  std::unique_ptr<KvSequence> sequence;
  int n_shared_tokens = 0;  // of them, held by other sequences
  bool state_in_memory = false;
};
Result<RestoredKv> RestoreKv(const KvPlan& plan, const PrefixIds& ids,
                             StoreMatch&& match);

}  // namespace hearth
