#include "engine/prompt_cache.h"

#include <algorithm>
#include <utility>

namespace hearth {

PromptCache::PromptCache(std::string file)
    : file_(std::move(file)),
      queue_(std::make_unique<SaveQueue>()) {}

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
  if (!file_.empty()) return LookupBundle(file_, identity_, spec, tokens);
  if (store_ != nullptr) return store_->Lookup(identity_, spec, tokens);
  StoreMatch match;
  match.miss_reason = open_error_;
  match.warnings.push_back(open_error_);
  return match;
}

void PromptCache::Save(std::span<const std::int32_t> tokens,
                       const KvSequence& sequence, int n_stored,
                       std::string preview) {
  const bool to_file = !file_.empty();
  if (!to_file && store_ == nullptr) return;
  const KvSpec& spec = sequence.spec();
  const int n_tokens = static_cast<int>(tokens.size());
  const int n_blocks = (n_tokens + spec.block_tokens - 1) / spec.block_tokens;
  const int first = to_file ? 0 : n_stored / spec.block_tokens;
  std::vector<BlockImage> images;
  for (int block = first; block < n_blocks; ++block) {
    const int n = std::min(spec.block_tokens, n_tokens - block * spec.block_tokens);
    images.push_back(sequence.Image(block, n));
  }
  std::vector<std::int32_t> ids(tokens.begin(), tokens.end());
  if (to_file) {
    SaveToFile(std::move(ids), std::move(images), spec);
  } else {
    SaveToDirectory(std::move(ids), std::move(images), spec, first,
                    std::move(preview));
  }
}

namespace {

// Block `index` of a chain, with `image` as its bytes.
BlockToSave Describe(std::span<const std::int32_t> tokens,
                     std::span<const Digest> chain, const Digest& root,
                     int index, const BlockImage& image, int block_tokens) {
  const auto i = static_cast<std::size_t>(index);
  const auto begin = i * static_cast<std::size_t>(block_tokens);
  return {.parent = index == 0 ? root : chain[i - 1],
          .id = chain[i],
          .tokens = tokens.subspan(begin, static_cast<std::size_t>(image.n_tokens)),
          .payload = image.payload};
}

std::size_t BytesOf(std::span<const BlockImage> images) {
  std::size_t n = 0;
  for (const BlockImage& image : images) n += image.payload.size();
  return n;
}

}  // namespace

void PromptCache::SaveToDirectory(std::vector<std::int32_t> tokens,
                                  std::vector<BlockImage> images, KvSpec spec,
                                  int first_new, std::string preview) {
  const std::size_t bytes = BytesOf(images);
  queue_->Enqueue(
      [this, tokens = std::move(tokens), images = std::move(images), spec,
       first_new, preview = std::move(preview)]() -> Result<void> {
        const auto chain = ChainIds(identity_, tokens, spec.block_tokens);
        const Digest root = RootId(identity_);
        std::vector<BlockToSave> blocks;
        for (std::size_t i = 0; i < images.size(); ++i) {
          const int index = first_new + static_cast<int>(i);
          blocks.push_back(Describe(tokens, chain, root, index, images[i],
                                    spec.block_tokens));
        }
        std::optional<BlockToSave> tail;
        if (!images.empty() && images.back().n_tokens < spec.block_tokens) {
          tail = blocks.back();
          blocks.pop_back();
        }
        HEARTH_TRY(store_->SaveBlocks(identity_, spec, blocks));
        return store_->SaveManifest(identity_, spec, tokens,
                                    tail.has_value() ? &*tail : nullptr, preview);
      },
      bytes);
}

void PromptCache::SaveToFile(std::vector<std::int32_t> tokens,
                             std::vector<BlockImage> images, KvSpec spec) {
  const std::size_t bytes = BytesOf(images);
  queue_->Enqueue(
      [this, tokens = std::move(tokens), images = std::move(images),
       spec]() -> Result<void> {
        const auto chain = ChainIds(identity_, tokens, spec.block_tokens);
        const Digest root = RootId(identity_);
        std::vector<BlockToSave> blocks;
        for (std::size_t i = 0; i < images.size(); ++i) {
          blocks.push_back(Describe(tokens, chain, root, static_cast<int>(i),
                                    images[i], spec.block_tokens));
        }
        return SaveBundle(file_, identity_, spec, tokens, blocks);
      },
      bytes);
}

Result<void> PromptCache::Drain() { return queue_->Drain(); }

}  // namespace hearth
