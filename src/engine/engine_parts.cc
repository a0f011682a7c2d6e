// How much KV memory a session of this engine may need.
#include <algorithm>

#include "engine/session.h"

namespace hearth {

bool EngineParts::IsEnd(std::int32_t id) const {
  return tokenizer->IsEnd(id) ||
         std::find(model.eos_ids.begin(), model.eos_ids.end(), id) !=
             model.eos_ids.end();
}

Result<std::unique_ptr<KvSequence>> EngineParts::NewSequence() const {
  if (options.kv_growth == KvGrowth::kConcat) {
    return MakeConcatSequence(spec, context_tokens);
  }
  HEARTH_ASSIGN(auto kv_pool,
                MakeKvPool(spec, retention,
                           {.n_blocks = n_kv_blocks(),
                            .preallocate = options.kv_preallocate}));
  return MakeInPlaceSequence(std::move(kv_pool), spec, retention);
}

bool EngineParts::forgets() const {
  return std::all_of(retention.windows.begin(), retention.windows.end(),
                     [](int window) { return window > 0; });
}

int EngineParts::n_kv_blocks() const {
  const auto blocks = [this](std::int64_t n_tokens) {
    return (n_tokens + spec.block_tokens - 1) / spec.block_tokens;
  };
  std::int64_t n = blocks(context_tokens);
  if (forgets()) {
    const int window =
        *std::max_element(retention.windows.begin(), retention.windows.end());
    std::int64_t kept = std::int64_t{window} + Forward::kStepTokensMax;
    // What waits to be saved.
    if (prompt_cache != nullptr) kept += kUnsavedTokensMax;
    n = std::min(n, blocks(retention.sink_tokens) + blocks(kept) + 4);
  }
  return static_cast<int>(n);
}

}  // namespace hearth
