// A prompt's beginning as the prompt cache has it: looked for on any thread,
// then made a sequence of.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/kv_plan.h"
#include "engine/prompt_cache/prompt_cache.h"

namespace hearth {

struct FoundPrefix {
  StoreMatch match;
  const char* tier = "none";
  double lookup_ms = 0;
  std::vector<std::int32_t> tokens;  // [match.n_tokens]
};

// Nothing is read when the first `n_have` tokens, which the caller has, are all
// that is stored. Waits for files and the network, for no forward step.
FoundPrefix FindPrefix(PromptCache& cache, const KvSpec& spec,
                       std::span<const std::int32_t> tokens, int n_have);

// A sequence of what was found, into a new one: a failed load touches no live
// one. kResourceFull, kIo.
Result<std::unique_ptr<KvSequence>> RestoreKv(const KvPlan& plan,
                                              StoreMatch&& match);

}  // namespace hearth
