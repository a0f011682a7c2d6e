// The inside of an Engine: what its sessions, conversations and drafters share.
// Each member does one job and knows nothing of the others; whoever needs one
// alone takes it alone.
//
// Threads  the members may be used from any thread; those that change have a
//          mutex of their own.
#pragma once

#include <memory>

#include "engine/constraint/lazy_token_trie.h"
#include "engine/draft/drafter.h"
#include "engine/kv_plan.h"
#include "engine/prompt_cache/prompt_cache.h"
#include "engine/session/ram_budget.h"
#include "engine/session/step_runner.h"
#include "engine/weight_prefetch.h"
#include "engine/workers.h"
#include "hearth/engine.h"
#include "hearth/options.h"
#include "model/identity.h"
#include "model/weights.h"
#include "text/tokenizer.h"

namespace hearth {

struct EngineCore {
  EngineOptions options;
  LoadedModel model;
  std::unique_ptr<WeightPrefetch> prefetch;  // of `model`
  std::shared_ptr<const Tokenizer> tokenizer;
  LazyTokenTrie token_trie;  // of `tokenizer`, for constraints
  KvPlan kv;
  Digest chain_root;  // what the first block of every sequence stands behind
  std::shared_ptr<Workers> workers;  // a draft model's too
  DeviceReport device;
  std::unique_ptr<StepRunner> steps;          // of `model`, on `workers`
  std::unique_ptr<PromptCache> prompt_cache;  // may be null
  std::unique_ptr<RamBudget> ram;             // of all sessions
  std::unique_ptr<DraftSource> draft;         // may be null
};

// What an engine is made of, for the rest of the library.
struct EngineAccess {
  static EngineCore& Core(Engine& engine) { return *engine.core_; }
  static std::shared_ptr<EngineCore> Shared(Engine& engine) {
    return engine.core_;
  }
};

// What an engine for another one's drafts takes from it.
struct LentToDraft {
  std::shared_ptr<Workers> workers;  // null: its own
  int context_tokens_max = 0;        // 0: no limit
};

// All that Engine::Open makes but the draft. `on_read`: of the model's bytes,
// when its identity is computed.
Result<std::shared_ptr<EngineCore>> OpenCore(const EngineOptions& options,
                                             const LentToDraft& lent,
                                             const BytesRead& on_read);

}  // namespace hearth
