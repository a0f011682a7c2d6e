#include "engine/kv_plan.h"

#include <sys/sysinfo.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/words/units.h"
#include "engine/kv_setup.h"
#include "model/forward.h"

namespace hearth {
namespace {

// Blocks that a sequence of `context_tokens` may hold at once. Where every KV
// layer forgets, memory does not grow with the context.
int BlocksOf(const KvSpec& spec, const KvRetention& retention,
             std::int64_t context_tokens, std::int64_t unsaved_tokens) {
  const auto blocks = [&](std::int64_t n_tokens) {
    return (n_tokens + spec.block_tokens - 1) / spec.block_tokens;
  };
  std::int64_t n = blocks(context_tokens);
  const bool forgets =
      std::all_of(retention.windows.begin(), retention.windows.end(),
                  [](int window) { return window > 0; });
  if (forgets) {
    const int window =
        *std::max_element(retention.windows.begin(), retention.windows.end());
    const std::int64_t kept =
        std::int64_t{window} + Forward::kStepTokensMax + unsaved_tokens;
    n = std::min(n, blocks(retention.sink_tokens) + blocks(kept) + 4);
  }
  return static_cast<int>(n);
}

}  // namespace

Result<KvPlan> KvPlan::Make(const EngineOptions& options,
                            const ModelConfig& config, bool has_prompt_cache,
                            int context_tokens_max) {
  KvPlan plan;
  plan.spec_ =
      SpecOf(config, FormatOf(options.kv_keys.value_or(options.kv_storage)),
             FormatOf(options.kv_values.value_or(options.kv_storage)),
             options.block_tokens);
  plan.retention_ = RetentionOf(config);
  plan.context_tokens_ = options.context_tokens > 0 ? options.context_tokens
                         : config.stream_window > 0 ? kUnboundedContext
                                                    : config.context_length;
  if (context_tokens_max > 0) {
    plan.context_tokens_ = std::min(plan.context_tokens_, context_tokens_max);
  }
  if (config.learned_positions &&
      plan.context_tokens_ > config.context_length) {
    return {Code::kInvalidArgument,
            "a context of " + std::to_string(plan.context_tokens_) +
                " tokens: the model has learned positions for " +
                std::to_string(config.context_length) + " only"};
  }
  HEARTH_TRY(CheckConcat(options, plan.spec_));
  plan.concat_ = options.kv_growth == KvGrowth::kConcat;
  plan.preallocate_ = options.kv_preallocate;
  // What waits to be saved.
  const int n_unsaved = has_prompt_cache ? kUnsavedTokensMax : 0;
  plan.n_blocks_ =
      BlocksOf(plan.spec_, plan.retention_, plan.context_tokens_, n_unsaved);
  HEARTH_TRY(plan.CheckPreallocation(options));
  if (plan.concat_) return plan;
  if (!plan.spec_.states.empty()) {
    plan.states_ = std::make_shared<StateIndex>();
  }
  HEARTH_ASSIGN(plan.pool_,
                MakeKvPool(plan.spec_, plan.retention_,
                           {.n_blocks = plan.n_blocks_,
                            .preallocate = plan.preallocate_,
                            .bytes_max = options.kv_ram_budget_bytes}));
  return plan;
}

// A whole preallocated context must fit into the memory that is there.
Result<void> KvPlan::CheckPreallocation(const EngineOptions& options) const {
  if (!preallocate_) return {};
  if (concat_) {
    return {Code::kInvalidArgument,
            "a preallocated KV cache grows in place: the concat reference "
            "allocates at every append"};
  }
  struct sysinfo memory;
  if (::sysinfo(&memory) != 0) return {};
  const std::uint64_t total = std::uint64_t{memory.totalram} * memory.mem_unit;
  const std::uint64_t wanted =
      spec_.full_block_bytes() * static_cast<std::uint64_t>(n_blocks_);
  const std::string what = "a preallocated KV cache would take " +
                           InUnits(wanted) + " for " +
                           std::to_string(n_blocks_) + " blocks of " +
                           std::to_string(spec_.block_tokens) + " tokens";
  if (options.kv_ram_budget_bytes > 0 && wanted > options.kv_ram_budget_bytes) {
    return {Code::kResourceFull, what + ", more than the KV memory budget of " +
                                     InUnits(options.kv_ram_budget_bytes) +
                                     "; give a smaller context"};
  }
  if (wanted > total / 2) {
    return {Code::kResourceFull,
            what +
                ", more than half of this machine's memory; give a smaller "
                "context"};
  }
  return {};
}

std::unique_ptr<KvSequence> KvPlan::NewSequence() const {
  if (concat_) return MakeConcatSequence(spec_, context_tokens_);
  return MakeInPlaceSequence(pool_, spec_, retention_);
}

}  // namespace hearth
