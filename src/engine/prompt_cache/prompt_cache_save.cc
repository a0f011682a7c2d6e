// What goes to the writer thread.
#include <algorithm>
#include <utility>

#include "engine/prompt_cache/prompt_cache.h"

namespace hearth {
namespace {

// Blocks written between two looks at whether the program must end.
constexpr std::size_t kBlocksPerWrite = 32;

}  // namespace

struct PromptCache::Batch {
  KvIdentity identity;
  std::vector<std::int32_t> tokens;
  std::vector<BlockImage> images;
  KvSpec spec;
  int first = 0;  // block that images[0] is
  StatesToSave states;

  std::size_t bytes() const {
    std::size_t n = 0;
    for (const BlockImage& image : images) n += image.payload.size();
    for (const StateCheckpointPtr& state : states.states) {
      n += state->slab->is_memory() ? state->slab->bytes() : 0;
    }
    return n;
  }
};

Result<PromptCache::Batch> PromptCache::MakeBatch(
    const std::string& key_space, std::span<const std::int32_t> tokens,
    const KvSequence& sequence, int first, const StatesToSave& states) const {
  Batch batch{IdentityIn(key_space),
              {tokens.begin(), tokens.end()},
              {},
              sequence.spec(),
              first,
              states};
  const int n_tokens = static_cast<int>(tokens.size());
  const int step = batch.spec.block_tokens;
  for (int block = first; block * step < n_tokens; ++block) {
    const int n = std::min(step, n_tokens - block * step);
    HEARTH_ASSIGN(BlockImage image, sequence.Image(block, n));
    batch.images.push_back(std::move(image));
  }
  return batch;
}

bool PromptCache::Save(const std::string& key_space,
                       std::span<const std::int32_t> tokens,
                       const KvSequence& sequence, int n_stored,
                       const StatesToSave& states, std::string preview,
                       bool may_wait) {
  if (store_ == nullptr) return true;
  auto batch = MakeBatch(key_space, tokens, sequence,
                         n_stored / sequence.spec().block_tokens, states);
  if (!batch.ok()) return false;  // the next step says why
  const std::size_t bytes = batch->bytes();
  SaveQueue::Job job = [this, batch = std::move(*batch),
                        preview = std::move(preview)] {
    return WritePrompt(batch, preview);
  };
  if (!may_wait) return queue_->TryEnqueue(std::move(job), bytes);
  queue_->Enqueue(std::move(job), bytes);
  return true;
}

bool PromptCache::SaveBlocks(const std::string& key_space,
                             std::span<const std::int32_t> tokens,
                             const KvSequence& sequence, int n_stored,
                             const StatesToSave& states) {
  if (store_ == nullptr || queue_->failed()) return false;
  auto batch = MakeBatch(key_space, tokens, sequence,
                         n_stored / sequence.spec().block_tokens, states);
  if (!batch.ok()) return false;  // the next step says why
  const std::size_t bytes = batch->bytes();
  return queue_->TryEnqueue(
      [this, batch = std::move(*batch)] {
        return WriteBlocks(batch, BlockChain(batch.identity, batch.tokens,
                                             batch.spec.block_tokens));
      },
      bytes);
}

Result<void> PromptCache::WriteBlocks(const Batch& batch,
                                      const BlockChain& chain) const {
  std::vector<ByteSpan> payloads;
  for (const BlockImage& image : batch.images) {
    payloads.push_back(image.payload);
  }
  auto first = static_cast<std::size_t>(batch.first);
  for (auto rest = std::span<const ByteSpan>(payloads); !rest.empty();) {
    if (queue_->giving_up()) return {Code::kCancelled, "saving was given up"};
    const auto some = rest.first(std::min(rest.size(), kBlocksPerWrite));
    HEARTH_TRY(store_->SaveBlocks(chain, batch.spec, first, some));
    first += some.size();
    rest = rest.subspan(some.size());
  }
  for (const StateCheckpointPtr& state : batch.states.states) {
    if (queue_->giving_up()) return {Code::kCancelled, "saving was given up"};
    HEARTH_TRY(store_->SaveState(chain, batch.spec,
                                 static_cast<std::size_t>(state->n_tokens),
                                 state->slab->payload()));
  }
  for (const int n : batch.states.dropped) {
    store_->DropState(chain, static_cast<std::size_t>(n));
  }
  return {};
}

Result<void> PromptCache::WritePrompt(const Batch& batch,
                                      const std::string& preview) const {
  const BlockChain chain(batch.identity, batch.tokens, batch.spec.block_tokens);
  HEARTH_TRY(WriteBlocks(batch, chain));
  return store_->SaveManifest(chain, batch.spec, preview);
}

}  // namespace hearth
