// What the KV sequences of an engine are: the shape of their blocks, what they
// keep, and how much room one may need. Sequences are made here alone.
#pragma once

#include <memory>

#include "cache/kv_sequence.h"
#include "cache/kv_spec.h"
#include "cache/states/state_index.h"
#include "hearth/options.h"
#include "hearth/result.h"
#include "model/config.h"

namespace hearth {

// Without a limit of the caller's, when old tokens are let go of.
inline constexpr int kUnboundedContext = 1 << 30;

// Tokens that a window is done with and that still wait for the store's writer:
// beyond this they are given up, so that a slow disk does not fill the memory.
inline constexpr int kUnsavedTokensMax = 4096;

class KvPlan {
 public:
  KvPlan() = default;
  // `config` has the streaming window that the options ask for (SetStreaming).
  // `context_tokens_max` 0: no limit besides the options'. kInvalidArgument,
  // kResourceFull for what the options cannot have of this model or machine.
  static Result<KvPlan> Make(const EngineOptions& options,
                             const ModelConfig& config, bool has_prompt_cache,
                             int context_tokens_max);

  const KvSpec& spec() const { return spec_; }
  int context_tokens() const { return context_tokens_; }
  // Blocks in memory at once that a sequence may need.
  int n_blocks() const { return n_blocks_; }
  // An empty sequence; it takes its blocks from the pool.
  std::unique_ptr<KvSequence> NewSequence() const;
  // Of all sequences; null for the concat reference.
  const std::shared_ptr<BlockPool>& pool() const { return pool_; }
  // Positions that sequences keep, of a spec with states; null without any.
  const std::shared_ptr<StateIndex>& states() const { return states_; }

 private:
  Result<void> CheckPreallocation(const EngineOptions& options) const;

  KvSpec spec_;
  KvRetention retention_;
  int context_tokens_ = 0;
  int n_blocks_ = 0;
  bool concat_ = false, preallocate_ = false;
  std::shared_ptr<BlockPool> pool_;
  std::shared_ptr<StateIndex> states_;
};

}  // namespace hearth
