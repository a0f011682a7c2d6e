#include <algorithm>
#include <utility>

#include "base/check.h"
#include "cache/kv_sequence.h"
#include "cache/tile_copy.h"
#include "kernels/kernels.h"

namespace hearth {
namespace {

class InPlaceSequence final : public KvSequence {
 public:
  InPlaceSequence(const KvSpec& spec, BlockPool pool)
      : spec_(spec),
        layout_(spec, spec.block_tokens),
        pool_(std::move(pool)),
        layer_tokens_(static_cast<std::size_t>(spec.n_kv_layers), 0) {}

  const KvSpec& spec() const override { return spec_; }
  int n_tokens() const override { return n_tokens_; }

  Result<void> Extend(int n) override {
    // All that can fail comes first, so that an error changes nothing.
    std::shared_ptr<Block> own_tail;
    const int n_live = n_tokens_ % spec_.block_tokens;
    if (n_live != 0 && (blocks_.back()->mapped() || blocks_.back().use_count() > 1)) {
      HEARTH_ASSIGN(own_tail, pool_.Allocate());
      CopyBlockTokens(spec_, layout_, blocks_.back()->data(), layout_,
                      own_tail->writable(), n_live);
    }
    const int n_wanted =
        (n_tokens_ + n + spec_.block_tokens - 1) / spec_.block_tokens;
    std::vector<std::shared_ptr<Block>> fresh;
    for (int i = static_cast<int>(blocks_.size()); i < n_wanted; ++i) {
      HEARTH_ASSIGN(std::shared_ptr<Block> block, pool_.Allocate());
      fresh.push_back(std::move(block));
    }
    if (own_tail != nullptr) blocks_.back() = std::move(own_tail);
    blocks_.insert(blocks_.end(), fresh.begin(), fresh.end());
    n_new_ = n;
    return {};
  }

  void BeginLayer(int kv_layer) override {
    layer_tokens_[static_cast<std::size_t>(kv_layer)] = n_tokens_ + n_new_;
  }

  void WriteHead(int kv_layer, int kv_head, const float* keys,
                 const float* values, std::int64_t row_stride) override {
    const Kernels& kernels = ActiveKernels();
    for (int t = 0; t < n_new_; ++t) {
      const int position = n_tokens_ + t;
      const int slot = position % spec_.block_tokens;
      std::byte* block = BlockAt(position / spec_.block_tokens)->writable();
      kernels.store_key(spec_.format, keys + t * row_stride, spec_.head_dim,
                        block + layout_.key_tile(kv_layer, kv_head),
                        spec_.block_tokens, slot);
      kernels.store_value(spec_.format, values + t * row_stride, spec_.head_dim,
                          block + layout_.value_tile(kv_layer, kv_head), slot);
    }
  }

  KvTile Tile(int kv_layer, int kv_head, int block) const override {
    const std::byte* bytes = BlockAt(block)->data();
    const int n_seen = layer_tokens_[static_cast<std::size_t>(kv_layer)];
    KvTile tile;
    tile.keys = bytes + layout_.key_tile(kv_layer, kv_head);
    tile.values = bytes + layout_.value_tile(kv_layer, kv_head);
    tile.n_tokens =
        std::min(spec_.block_tokens, n_seen - block * spec_.block_tokens);
    tile.stride = spec_.block_tokens;
    return tile;
  }

  void Commit() override {
    n_tokens_ += n_new_;
    n_new_ = 0;
  }

  void Rewind(int n_tokens) override {
    HEARTH_CHECK(n_tokens >= 0 && n_tokens <= n_tokens_);
    n_tokens_ = n_tokens;
    n_new_ = 0;
    blocks_.resize(static_cast<std::size_t>(n_blocks()));
    std::fill(layer_tokens_.begin(), layer_tokens_.end(), n_tokens);
  }

  Result<std::unique_ptr<KvSequence>> Fork() const override {
    // A pool of its own, so that both may grow to the full context: address
    // space costs nothing, and blocks keep the pool they came from alive.
    HEARTH_ASSIGN(BlockPool pool, BlockPool::Reserve(pool_.block_bytes(),
                                                     pool_.capacity(),
                                                     /*preallocate=*/false));
    auto fork = std::make_unique<InPlaceSequence>(spec_, std::move(pool));
    fork->blocks_ = blocks_;
    fork->Rewind0(n_tokens_);
    return std::unique_ptr<KvSequence>(std::move(fork));
  }

  Result<void> AppendStored(ByteSpan payload, int n_tokens,
                            std::shared_ptr<const void> owner) override {
    HEARTH_CHECK(n_tokens_ % spec_.block_tokens == 0 && n_tokens >= 1 &&
                 n_tokens <= spec_.block_tokens);
    const KvLayout stored(spec_, n_tokens);
    HEARTH_CHECK(payload.size() == stored.block_bytes());
    std::shared_ptr<Block> block;
    if (n_tokens == spec_.block_tokens) {
      block = Block::Mapped(payload, std::move(owner));
    } else {
      HEARTH_ASSIGN(block, pool_.Allocate());
      CopyBlockTokens(spec_, stored, payload.data(), layout_, block->writable(),
                      n_tokens);
    }
    blocks_.push_back(std::move(block));
    Rewind0(n_tokens_ + n_tokens);
    return {};
  }

  BlockImage Image(int block, int n) const override {
    HEARTH_CHECK(n >= 1 && n <= spec_.block_tokens &&
                 block * spec_.block_tokens + n <= n_tokens_);
    const std::shared_ptr<Block>& source = BlockAt(block);
    if (n == spec_.block_tokens) {
      return {ByteSpan(source->data(), layout_.block_bytes()), n, source};
    }
    const KvLayout compact(spec_, n);
    auto copy = std::make_shared<std::vector<std::byte>>(compact.block_bytes());
    CopyBlockTokens(spec_, layout_, source->data(), compact, copy->data(), n);
    return {ByteSpan(*copy), n, copy};
  }

  KvUsage Usage() const override {
    KvUsage usage;
    usage.logical_bytes =
        static_cast<std::uint64_t>(n_tokens_) * spec_.bytes_per_token();
    for (const std::shared_ptr<Block>& block : blocks_) {
      (block->mapped() ? usage.mapped_bytes : usage.physical_bytes) +=
          block->size();
    }
    if (pool_.preallocated()) usage.physical_bytes = pool_.committed_bytes();
    usage.physical_bytes += usage.mapped_bytes;
    usage.populated_layers = static_cast<int>(
        std::count_if(layer_tokens_.begin(), layer_tokens_.end(),
                      [](int n) { return n > 0; }));
    return usage;
  }

 private:
  void Rewind0(int n_tokens) {
    n_tokens_ = n_tokens;
    std::fill(layer_tokens_.begin(), layer_tokens_.end(), n_tokens);
  }
  const std::shared_ptr<Block>& BlockAt(int block) const {
    return blocks_[static_cast<std::size_t>(block)];
  }

  KvSpec spec_;
  KvLayout layout_;
  BlockPool pool_;
  std::vector<std::shared_ptr<Block>> blocks_;
  std::vector<int> layer_tokens_;  // tokens that each layer can attend to
  int n_tokens_ = 0;
  int n_new_ = 0;  // between Extend and Commit
};

}  // namespace

std::unique_ptr<KvSequence> MakeInPlaceSequence(const KvSpec& spec,
                                                BlockPool pool) {
  HEARTH_CHECK(pool.block_bytes() ==
               KvLayout(spec, spec.block_tokens).block_bytes());
  return std::make_unique<InPlaceSequence>(spec, std::move(pool));
}

}  // namespace hearth
