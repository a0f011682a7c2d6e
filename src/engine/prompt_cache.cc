#include "engine/prompt_cache.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace hearth {
namespace {

// Blocks written between two looks at whether the program must end.
constexpr std::size_t kBlocksPerWrite = 32;

}  // namespace

struct PromptCache::Batch {
  std::vector<std::int32_t> tokens;
  std::vector<BlockImage> images;
  KvSpec spec;
  int first = 0;  // block that images[0] is

  std::size_t bytes() const {
    std::size_t n = 0;
    for (const BlockImage& image : images) n += image.payload.size();
    return n;
  }
  bool has_tail() const {
    return !images.empty() && images.back().n_tokens < spec.block_tokens;
  }
  // They point into this batch.
  std::vector<BlockToSave> Blocks(const KvIdentity& identity) const {
    const auto chain = ChainIds(identity, tokens, spec.block_tokens);
    const Digest root = RootId(identity);
    std::vector<BlockToSave> blocks;
    auto i = static_cast<std::size_t>(first);
    for (const BlockImage& image : images) {
      blocks.push_back(
          {.parent = i == 0 ? root : chain[i - 1],
           .id = chain[i],
           .tokens = std::span(tokens).subspan(
               i * static_cast<std::size_t>(spec.block_tokens),
               static_cast<std::size_t>(image.n_tokens)),
           .payload = image.payload});
      ++i;
    }
    return blocks;
  }
};

PromptCache::PromptCache(std::string file)
    : file_(std::move(file)), queue_(std::make_unique<SaveQueue>()) {}

Result<std::unique_ptr<PromptCache>> PromptCache::Open(
    const EngineOptions& options) {
  if (options.prompt_cache_file.empty() && options.prompt_cache_dir.empty()) {
    return std::unique_ptr<PromptCache>();
  }
  auto cache = std::unique_ptr<PromptCache>(
      new PromptCache(options.prompt_cache_file));
  if (cache->file_.empty()) {
    StoreOptions store_options;
    store_options.verify = options.cache_verify;
    store_options.disk_budget_bytes = options.cache_disk_budget_bytes;
    store_options.free_space_reserve_bytes = options.cache_free_reserve_bytes;
    auto store = KvStore::Open(options.prompt_cache_dir, store_options);
    if (store.ok()) {
      cache->store_ = std::move(*store);
      cache->directory_ = options.prompt_cache_dir;
    } else if (store.error().code == Code::kInvalidArgument ||
               store.error().code == Code::kIncompatible) {
      return store.error();
    } else {
      cache->open_error_ = "prompt cache is off: " + store.error().message;
    }
  }
  return cache;
}

StoreMatch PromptCache::Lookup(const KvSpec& spec,
                               std::span<const std::int32_t> tokens) {
  StoreMatch match;
  if (!file_.empty()) {
    match = LookupBundle(file_, identity_, spec, tokens);
  } else if (store_ != nullptr) {
    match = store_->Lookup(identity_, spec, tokens);
  } else {
    match.miss_reason = open_error_;
    match.warnings.push_back(open_error_);
  }
  const auto error = queue_->TakeError();
  if (error.has_value() && error->message != reported_error_) {
    reported_error_ = error->message;
    match.warnings.push_back("prompt cache not saved: " + error->message);
  }
  return match;
}

PromptCache::Batch PromptCache::MakeBatch(std::span<const std::int32_t> tokens,
                                          const KvSequence& sequence,
                                          int first) {
  Batch batch{{tokens.begin(), tokens.end()}, {}, sequence.spec(), first};
  const int n_tokens = static_cast<int>(tokens.size());
  const int step = batch.spec.block_tokens;
  for (int block = first; block * step < n_tokens; ++block) {
    const int n = std::min(step, n_tokens - block * step);
    batch.images.push_back(sequence.Image(block, n));
  }
  return batch;
}

void PromptCache::Save(std::span<const std::int32_t> tokens,
                       const KvSequence& sequence, int n_stored,
                       std::string preview) {
  const bool to_file = !file_.empty();
  if (!to_file && store_ == nullptr) return;
  const int first = to_file ? 0 : n_stored / sequence.spec().block_tokens;
  Batch batch = MakeBatch(tokens, sequence, first);
  const std::size_t bytes = batch.bytes();
  queue_->Enqueue(
      [this, to_file, batch = std::move(batch), preview = std::move(preview)] {
        return to_file ? WriteFile(batch) : WritePrompt(batch, preview);
      },
      bytes);
}

bool PromptCache::SaveBlocks(std::span<const std::int32_t> tokens,
                             const KvSequence& sequence, int n_stored) {
  if (store_ == nullptr || queue_->failed()) return false;
  Batch batch =
      MakeBatch(tokens, sequence, n_stored / sequence.spec().block_tokens);
  const std::size_t bytes = batch.bytes();
  return queue_->TryEnqueue(
      [this, batch = std::move(batch)] {
        return WriteBlocks(batch, batch.Blocks(identity_));
      },
      bytes);
}

Result<void> PromptCache::WriteBlocks(
    const Batch& batch, std::span<const BlockToSave> blocks) const {
  while (!blocks.empty()) {
    if (queue_->giving_up()) return {Code::kCancelled, "saving was given up"};
    const auto some = blocks.first(std::min(blocks.size(), kBlocksPerWrite));
    HEARTH_TRY(store_->SaveBlocks(identity_, batch.spec, some));
    blocks = blocks.subspan(some.size());
  }
  return {};
}

Result<void> PromptCache::WritePrompt(const Batch& batch,
                                      const std::string& preview) const {
  std::vector<BlockToSave> blocks = batch.Blocks(identity_);
  std::optional<BlockToSave> tail;
  if (batch.has_tail()) {
    tail = blocks.back();
    blocks.pop_back();
  }
  HEARTH_TRY(WriteBlocks(batch, blocks));
  return store_->SaveManifest(identity_, batch.spec, batch.tokens,
                              tail.has_value() ? &*tail : nullptr, preview);
}

Result<void> PromptCache::WriteFile(const Batch& batch) const {
  return SaveBundle(file_, identity_, batch.spec, batch.tokens,
                    batch.Blocks(identity_));
}

std::uint64_t PromptCache::n_lost() const {
  const SaveQueueStats stats = queue_->stats();
  return stats.n_failed + stats.n_skipped;
}

Result<void> PromptCache::Drain(double seconds_max) {
  if (seconds_max <= 0) return queue_->Drain();
  return queue_->DrainFor(std::chrono::duration<double>(seconds_max));
}

}  // namespace hearth
