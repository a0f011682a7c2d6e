#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"
#include "cache/block_table.h"
#include "cache/kv_sequence.h"
#include "cache/tail_blocks.h"
#include "cache/tile_copy.h"
#include "kernels/kernels.h"

namespace hearth {
namespace {

// Full blocks lie in the table. A plain spec's tail is the table's last block;
// a quantised spec's tail is a float block of its own (TailBlocks), and sealing
// writes it into a block of the table.
class InPlaceSequence final : public KvSequence {
 public:
  InPlaceSequence(const KvSpec& spec, const KvRetention& retention,
                  BlockPool pool, TailBlocks tails)
      : spec_(spec),
        retention_(retention),
        layout_(spec, spec.block_tokens),
        pool_(std::move(pool)),
        table_(spec, retention),
        tails_(std::move(tails)),
        layer_tokens_(spec.layers.size(), 0) {}

  const KvSpec& spec() const override { return spec_; }
  int n_tokens() const override { return n_tokens_; }

  Result<void> Extend(int n) override {
    table_.Release(n_tokens_, releasable_ / spec_.block_tokens);
    // All that can fail comes first, so that an error changes nothing.
    std::shared_ptr<Block> own_tail;
    const int n_live = n_tokens_ % spec_.block_tokens;
    if (n_live != 0 && !spec_.quantised()) {
      const std::shared_ptr<Block>& tail = table_.At(table_.size() - 1);
      if (tail->mapped() || tail.use_count() > 1) {
        HEARTH_ASSIGN(own_tail, pool_.Allocate());
        CopyBlockTokens(spec_, layout_, tail->data(), layout_,
                        own_tail->writable(), n_live);
      }
    }
    const int n_wanted = BlocksOf(n_tokens_ + n);
    std::vector<std::shared_ptr<Block>> fresh;
    for (int i = table_.size(); i < n_wanted; ++i) {
      HEARTH_ASSIGN(std::shared_ptr<Block> block, pool_.Allocate());
      fresh.push_back(std::move(block));
    }
    if (spec_.quantised()) HEARTH_TRY(tails_.Begin(n_tokens_, n));
    if (own_tail != nullptr) {
      table_.Replace(table_.size() - 1, std::move(own_tail));
    }
    for (std::shared_ptr<Block>& block : fresh) table_.Push(std::move(block));
    n_new_ = n;
    return {};
  }

  void BeginLayer(int kv_layer) override {
    layer_tokens_[static_cast<std::size_t>(kv_layer)] = n_tokens_ + n_new_;
  }

  void WriteHead(int kv_layer, int kv_head, const float* keys,
                 const float* values, std::int64_t row_stride) override {
    if (spec_.quantised()) {
      tails_.WriteHead(kv_layer, kv_head, keys, values, row_stride);
      const int end = (n_tokens_ + n_new_) / spec_.block_tokens;
      for (int b = n_tokens_ / spec_.block_tokens; b < end; ++b) {
        Seal(kv_layer, kv_head, b);
      }
      return;
    }
    const Kernels& kernels = ActiveKernels();
    const KvLayer& shape = spec_.layer(kv_layer);
    const KvLayerLayout& layout = layout_.layer(kv_layer);
    for (int t = 0; t < n_new_; ++t) {
      const int position = n_tokens_ + t;
      const int slot = position % spec_.block_tokens;
      std::byte* layer = table_.At(position / spec_.block_tokens)->writable() +
                         layout_.offset(kv_layer);
      kernels.store_key(shape.key_format, keys + t * row_stride, shape.key_dim,
                        layer + layout.key_tile(kv_head), spec_.block_tokens,
                        slot);
      if (values == nullptr) continue;
      kernels.store_value(shape.value_format, values + t * row_stride,
                          shape.value_dim, layer + layout.value_tile(kv_head),
                          slot);
    }
  }

  KvTile Tile(int kv_layer, int kv_head, int block) const override {
    const int n_seen = layer_tokens_[static_cast<std::size_t>(kv_layer)] -
                       block * spec_.block_tokens;
    if (spec_.quantised() && n_seen < spec_.block_tokens) {
      return OwnTile(kv_layer, kv_head, block);
    }
    return layout_.TileAt(table_.At(block)->data(), kv_layer, kv_head,
                          std::min(spec_.block_tokens, n_seen));
  }

  KvTile OwnTile(int kv_layer, int kv_head, int block) const override {
    if (!spec_.quantised()) return Tile(kv_layer, kv_head, block);
    const int n_seen = layer_tokens_[static_cast<std::size_t>(kv_layer)] -
                       block * spec_.block_tokens;
    return tails_.TileOf(kv_layer, kv_head, block,
                         std::min(spec_.block_tokens, n_seen));
  }

  void Commit() override {
    n_tokens_ += n_new_;
    n_new_ = 0;
    if (spec_.quantised()) tails_.Commit();
  }

  int RewindableTo(int n_tokens) const override {
    HEARTH_CHECK(n_tokens >= 0 && n_tokens <= n_tokens_);
    if (spec_.quantised() && n_tokens < FullTokens(n_tokens_)) {
      n_tokens = FullTokens(n_tokens);
    }
    return n_tokens == n_tokens_ || table_.Serves(n_tokens) ? n_tokens : 0;
  }

  void Rewind(int n_tokens) override {
    HEARTH_CHECK(RewindableTo(n_tokens) == n_tokens);
    n_new_ = 0;
    if (spec_.quantised() && n_tokens % spec_.block_tokens == 0) {
      tails_.Clear();
    }
    table_.Truncate(BlocksOf(n_tokens));
    SetTokens(n_tokens);
  }

  Result<std::unique_ptr<KvSequence>> Fork() const override {
    // Pools of its own, so that both may grow to the full context: address
    // space costs nothing, and blocks keep the pool they came from alive.
    HEARTH_ASSIGN(BlockPool pool,
                  BlockPool::Reserve(pool_.block_bytes(), pool_.capacity(),
                                     /*preallocate=*/false, pool_.n_spare(),
                                     pool_.whole()));
    HEARTH_ASSIGN(TailBlocks tails, tails_.Fork(n_tokens_));
    auto fork = std::make_unique<InPlaceSequence>(
        spec_, retention_, std::move(pool), std::move(tails));
    fork->table_ = table_;
    fork->SetTokens(n_tokens_);
    fork->releasable_ = releasable_;
    return std::unique_ptr<KvSequence>(std::move(fork));
  }

  Result<void> AppendStored(ByteSpan payload, int n_tokens,
                            std::shared_ptr<const void> owner) override {
    HEARTH_CHECK(n_tokens_ % spec_.block_tokens == 0 && n_tokens >= 1 &&
                 n_tokens <= spec_.block_tokens);
    const KvLayout stored(spec_, n_tokens);
    HEARTH_CHECK(payload.size() == stored.block_bytes());
    if (n_tokens == spec_.block_tokens) {
      table_.Push(Block::Mapped(payload, std::move(owner)));
    } else if (spec_.quantised()) {
      HEARTH_TRY(tails_.Restore(n_tokens_, stored, payload, n_tokens));
    } else {
      HEARTH_ASSIGN(std::shared_ptr<Block> block, pool_.Allocate());
      CopyBlockTokens(spec_, stored, payload.data(), layout_, block->writable(),
                      n_tokens);
      table_.Push(std::move(block));
    }
    SetTokens(n_tokens_ + n_tokens);
    return {};
  }

  bool HasImage(int block, int n) const override {
    HEARTH_CHECK(n >= 1 && n <= spec_.block_tokens &&
                 block * spec_.block_tokens + n <= n_tokens_);
    if (block == table_.size()) return true;  // the tail of a quantised spec
    const bool cut = spec_.quantised() && n < spec_.block_tokens;
    return !cut && table_.IsWhole(block);
  }

  BlockImage Image(int block, int n) const override {
    HEARTH_CHECK(HasImage(block, n));
    if (n == spec_.block_tokens) {
      const std::shared_ptr<Block>& source = table_.At(block);
      return {ByteSpan(source->data(), layout_.block_bytes()), n, source};
    }
    const KvLayout compact(spec_, n);
    auto copy = std::make_shared<std::vector<std::byte>>(compact.block_bytes());
    if (spec_.quantised()) {
      tails_.CopyTo(compact, copy->data(), n);
    } else {
      CopyBlockTokens(spec_, layout_, table_.At(block)->data(), compact,
                      copy->data(), n);
    }
    return {ByteSpan(*copy), n, copy};
  }

  void SetReleasable(int n_tokens) override { releasable_ = n_tokens; }

  KvUsage Usage() const override {
    KvUsage usage;
    const bool quantised = spec_.quantised();
    const auto n = static_cast<std::uint64_t>(spec_.block_tokens);
    for (int i = 0; i < spec_.n_layers(); ++i) {
      const std::uint64_t full_bytes =
          spec_.layer(i).full_bytes(spec_.block_tokens);
      // Of a window, the newest tokens: its full blocks and the tail.
      const int n_seen = table_.SeenTokens(i, n_tokens_);
      const int n_tail = std::min(n_seen, n_tokens_ % spec_.block_tokens);
      usage.logical_bytes +=
          static_cast<std::uint64_t>(n_seen - n_tail) * full_bytes / n +
          static_cast<std::uint64_t>(n_tail) *
              (quantised ? spec_.layer(i).float_bytes()
                         : (full_bytes + n - 1) / n);
    }
    usage.mapped_bytes = table_.HeldBytes(/*mapped=*/true);
    usage.physical_bytes = pool_.preallocated()
                               ? pool_.committed_bytes()
                               : table_.HeldBytes(/*mapped=*/false);
    usage.physical_bytes += usage.mapped_bytes + tails_.held_bytes();
    usage.populated_layers = static_cast<int>(
        std::count_if(layer_tokens_.begin(), layer_tokens_.end(),
                      [](int held) { return held > 0; }));
    return usage;
  }

 private:
  // Blocks of the table for n tokens.
  int BlocksOf(int n_tokens) const {
    const int n = spec_.block_tokens;
    return spec_.quantised() ? n_tokens / n : (n_tokens + n - 1) / n;
  }
  int FullTokens(int n_tokens) const {
    return n_tokens / spec_.block_tokens * spec_.block_tokens;
  }
  void SetTokens(int n_tokens) {
    n_tokens_ = n_tokens;
    std::fill(layer_tokens_.begin(), layer_tokens_.end(), n_tokens);
  }

  // One head of a block whose last token this step wrote.
  void Seal(int kv_layer, int kv_head, int block) {
    const Kernels& kernels = ActiveKernels();
    const int n = spec_.block_tokens;
    const KvTile tile = tails_.TileOf(kv_layer, kv_head, block, n);
    const KvLayer& shape = spec_.layer(kv_layer);
    const KvLayerLayout& layout = layout_.layer(kv_layer);
    std::byte* out = table_.At(block)->writable() + layout_.offset(kv_layer);
    const auto floats = [](const std::byte* p) {
      return reinterpret_cast<const float*>(p);
    };
    kernels.seal_rows(shape.key_format, floats(tile.keys), shape.key_dim, n,
                      out + layout.key_tile(kv_head),
                      out + layout.key_params(kv_head));
    if (shape.value_dim == 0) return;
    kernels.seal_rows(shape.value_format, floats(tile.values), n,
                      shape.value_dim, out + layout.value_tile(kv_head),
                      out + layout.value_params(kv_head));
  }

  KvSpec spec_;
  KvRetention retention_;
  KvLayout layout_;
  BlockPool pool_;
  BlockTable table_;
  TailBlocks tails_;               // of a quantised spec
  std::vector<int> layer_tokens_;  // tokens that each layer can attend to
  int n_tokens_ = 0;
  int n_new_ = 0;  // between Extend and Commit
  int releasable_ = std::numeric_limits<int>::max();
};

}  // namespace

Result<std::unique_ptr<KvSequence>> MakeInPlaceSequence(
    const KvSpec& spec, int n_blocks, bool preallocate,
    const KvRetention& retention, int n_spare) {
  const bool whole = !retention.windowed();
  HEARTH_ASSIGN(
      BlockPool pool,
      BlockPool::Reserve(KvLayout(spec, spec.block_tokens).block_bytes(),
                         n_blocks, preallocate, n_spare, whole));
  HEARTH_ASSIGN(TailBlocks tails, TailBlocks::Make(spec));
  return std::unique_ptr<KvSequence>(std::make_unique<InPlaceSequence>(
      spec, retention, std::move(pool), std::move(tails)));
}

}  // namespace hearth
