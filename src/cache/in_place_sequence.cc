#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"
#include "cache/block_table.h"
#include "cache/kv_sequence.h"
#include "cache/sequence_on_device.h"
#include "cache/states/sequence_states.h"
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
  ~InPlaceSequence() override { (void)pool_->Promise(promise_, 0, 0); }
  InPlaceSequence(const InPlaceSequence&) = delete;
  InPlaceSequence& operator=(const InPlaceSequence&) = delete;
  InPlaceSequence(std::shared_ptr<BlockPool> pool, const KvSpec& spec,
                  const KvRetention& retention)
      : spec_(spec),
        retention_(retention),
        layout_(spec, spec.block_tokens),
        pool_(std::move(pool)),
        table_(pool_, spec, retention),
        tails_(pool_, spec, retention),
        states_(spec, pool_),
        device_(table_, tails_, layout_),
        layer_tokens_(spec.layers.size(), 0) {}

  const KvSpec& spec() const override { return spec_; }
  int n_tokens() const override { return n_tokens_; }

  Result<void> Extend(int n) override {
    table_.Release(n_tokens_, releasable_ / spec_.block_tokens);
    const BlockPromise before = promise_;
    Fresh fresh;
    if (const auto taken = Take(n, fresh); !taken.ok()) {
      pool_->Renew(promise_, before);
      states_.Abandon();
      return taken.error();
    }
    if (fresh.own_tail != nullptr) {
      table_.Replace(table_.size() - 1, std::move(fresh.own_tail));
    }
    for (BlockPtr& block : fresh.blocks) table_.Push(std::move(block));
    promise_without_new_ = fresh.promise_with_own_tail;
    n_new_ = n;
    return {};
  }

  DeviceKvPort* device() override { return &device_; }

  StatePort* states() override { return states_.empty() ? nullptr : &states_; }

  void BeginLayer(int kv_layer) override {
    layer_tokens_[static_cast<std::size_t>(kv_layer)] = n_tokens_ + n_new_;
  }

  void WriteHead(int kv_layer, int kv_head, const float* keys,
                 const float* values, std::int64_t row_stride) override {
    if (spec_.quantised()) {
      tails_.WriteHead(kv_layer, kv_head, keys, values, row_stride);
      const int end = (n_tokens_ + n_new_) / spec_.block_tokens;
      for (int b = n_tokens_ / spec_.block_tokens; b < end; ++b) {
        tails_.Seal(kv_layer, kv_head, b, layout_, *table_.At(b));
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
    const int n_full = n_tokens_ / spec_.block_tokens;
    n_tokens_ += n_new_;
    n_new_ = 0;
    if (spec_.quantised()) tails_.Commit();
    states_.Commit();
    for (int b = n_full; b < n_tokens_ / spec_.block_tokens; ++b) {
      pool_->Fill(table_.At(b));
    }
  }

  // A copy of a shared tail stays: it holds the same tokens.
  void Abandon() override {
    if (n_new_ > 0) pool_->Renew(promise_, promise_without_new_);
    if (spec_.quantised()) tails_.Abandon();
    states_.Abandon();
    table_.Truncate(BlocksOf(n_tokens_));
    n_new_ = 0;
    SetTokens(n_tokens_);
  }

  int RewindableTo(int n_tokens) const override {
    HEARTH_CHECK(n_tokens >= 0 && n_tokens <= n_tokens_);
    if (spec_.quantised() && n_tokens < FullTokens(n_tokens_)) {
      n_tokens = FullTokens(n_tokens);
    }
    n_tokens = n_tokens == n_tokens_ || table_.Serves(n_tokens) ? n_tokens : 0;
    // Positions that keys and values can be cut to and states cannot end
    // earlier, and the other way round; both agree at last at 0.
    const int n_states = states_.RewindableTo(n_tokens);
    return n_states == n_tokens ? n_tokens : RewindableTo(n_states);
  }

  void Rewind(int n_tokens) override {
    HEARTH_CHECK(RewindableTo(n_tokens) == n_tokens);
    states_.Rewind(n_tokens);
    n_new_ = 0;
    if (spec_.quantised() && n_tokens % spec_.block_tokens == 0) {
      tails_.Clear();
    }
    table_.Truncate(BlocksOf(n_tokens));
    SetTokens(n_tokens);
    n_published_ = std::min(n_published_, n_tokens / spec_.block_tokens);
  }

  StateCheckpointPtr KeepState() override {
    return states_.Keep([this]() -> StateTail {
      const int n = n_tokens_ % spec_.block_tokens;
      if (n == 0) return {};
      auto tail = Image(n_tokens_ / spec_.block_tokens, n);
      HEARTH_CHECK(tail.ok());  // no device has models with states
      return {tail->payload, std::move(tail->owner)};
    });
  }
  std::vector<StateCheckpointPtr> KeptStates() const override {
    return states_.kept();
  }
  void RestoreState(StateCheckpointPtr here) override {
    states_.Restore(n_tokens_, std::move(here));
  }

  Result<std::unique_ptr<KvSequence>> Fork() const override {
    auto fork = std::make_unique<InPlaceSequence>(pool_, spec_, retention_);
    HEARTH_TRY(fork->tails_.CopyFrom(fork->promise_, tails_, n_tokens_));
    fork->table_.CopyFrom(table_);
    fork->states_ = states_.Fork();
    fork->SetTokens(n_tokens_);
    fork->n_published_ = n_published_;
    fork->releasable_ = releasable_;
    return std::unique_ptr<KvSequence>(std::move(fork));
  }

  Result<void> AppendStored(ByteSpan payload, int n_tokens,
                            std::shared_ptr<const void> owner,
                            bool mapped) override {
    HEARTH_CHECK(n_tokens_ % spec_.block_tokens == 0 && n_tokens >= 1 &&
                 n_tokens <= spec_.block_tokens);
    const KvLayout stored(spec_, n_tokens);
    HEARTH_CHECK(payload.size() == stored.block_bytes());
    if (n_tokens == spec_.block_tokens) {
      table_.Push(pool_->Adopt(payload, std::move(owner), mapped));
    } else if (spec_.quantised()) {
      HEARTH_TRY(
          tails_.Restore(promise_, n_tokens_, stored, payload, n_tokens));
    } else {
      HEARTH_ASSIGN(BlockPtr block, pool_->Allocate(promise_));
      CopyBlockTokens(spec_, stored, payload.data(), layout_, block->writable(),
                      n_tokens);
      table_.Push(std::move(block));
    }
    SetTokens(n_tokens_ + n_tokens);
    return {};
  }

  void Publish(std::span<const Digest> ids) override {
    const int n_full =
        std::min(static_cast<int>(ids.size()), n_tokens_ / spec_.block_tokens);
    for (; n_published_ < n_full; ++n_published_) {
      if (!table_.IsWhole(n_published_)) continue;
      table_.Replace(
          n_published_,
          pool_->Publish(table_.At(n_published_),
                         ids[static_cast<std::size_t>(n_published_)]));
    }
  }

  int AppendShared(std::span<const Digest> ids) override {
    HEARTH_CHECK(n_tokens_ % spec_.block_tokens == 0);
    int n = n_tokens_ / spec_.block_tokens;
    const int n_before = n;
    for (; n < static_cast<int>(ids.size()); ++n) {
      BlockPtr block = pool_->Find(ids[static_cast<std::size_t>(n)]);
      if (block == nullptr) break;
      table_.Push(std::move(block));
    }
    SetTokens(n * spec_.block_tokens);
    if (n_published_ == n_before) n_published_ = n;
    return n - n_before;
  }

  void Exchange(int block, const Digest& id, ByteSpan payload,
                std::shared_ptr<const void> owner) override {
    if (IsMapped(block) || !table_.IsWhole(block)) return;
    HEARTH_CHECK(payload.size() == layout_.block_bytes());
    BlockPtr stored = pool_->Adopt(payload, std::move(owner), /*mapped=*/true);
    // Usually fetched already, when it was saved.
    const BlockPtr& mine = table_.At(block);
    if (mine->Fetch().ok()) stored->ShareCopyOf(*mine);
    table_.Replace(block, pool_->Exchange(id, std::move(stored)));
  }

  bool IsMapped(int block) const override {
    return table_.At(block) == nullptr || table_.At(block)->mapped();
  }

  std::uint64_t Reserve(int n_tokens) override {
    if (n_tokens <= n_tokens_) return pool_->Promise(promise_, 0, 0);
    int n_blocks = std::max(0, BlocksOf(n_tokens) - table_.size());
    if (n_tokens_ % spec_.block_tokens != 0 && !spec_.quantised()) {
      const BlockPtr& tail = table_.At(table_.size() - 1);  // may be copied
      n_blocks += tail->read_only() || tail.use_count() > 1 ? 1 : 0;
    }
    // A window lets go of the rest.
    n_blocks = std::min(
        n_blocks, std::max(2, pool_->options().n_blocks - table_.n_held()));
    // The tail after a step, while the one before it is there.
    return pool_->Promise(promise_, n_blocks, spec_.quantised() ? 1 : 0,
                          states_.wanted_bytes());
  }

  const BlockTable* table() const override { return &table_; }
  std::uint64_t TailBytes() const override {
    return tails_.held_bytes() + states_.own_bytes();
  }

  bool HasImage(int block, int n) const override {
    HEARTH_CHECK(n >= 1 && n <= spec_.block_tokens &&
                 block * spec_.block_tokens + n <= n_tokens_);
    if (block == table_.size()) return true;  // the tail of a quantised spec
    return (!spec_.quantised() || n == spec_.block_tokens) &&
           table_.IsWhole(block);
  }

  Result<BlockImage> Image(int block, int n) const override {
    HEARTH_CHECK(HasImage(block, n));
    if (n == spec_.block_tokens) {
      const BlockPtr& source = table_.At(block);
      HEARTH_TRY(source->Fetch());
      return BlockImage{ByteSpan(source->data(), layout_.block_bytes()), n,
                        source};
    }
    const KvLayout compact(spec_, n);
    auto copy = std::make_shared<std::vector<std::byte>>(compact.block_bytes());
    if (spec_.quantised()) {
      HEARTH_TRY(tails_.CopyTo(compact, copy->data(), n));
    } else {
      HEARTH_TRY(table_.At(block)->Fetch());
      CopyBlockTokens(spec_, layout_, table_.At(block)->data(), compact,
                      copy->data(), n);
    }
    return BlockImage{ByteSpan(*copy), n, copy};
  }

  void SetReleasable(int n_tokens) override { releasable_ = n_tokens; }

  KvUsage Usage() const override {
    KvUsage usage;
    const auto n = static_cast<std::uint64_t>(spec_.block_tokens);
    for (int i = 0; i < spec_.n_layers(); ++i) {
      const KvLayer& layer = spec_.layer(i);
      const std::uint64_t full_bytes = layer.full_bytes(spec_.block_tokens);
      // Of a window, the newest tokens: its full blocks and the tail.
      const int n_seen = table_.SeenTokens(i, n_tokens_);
      const int n_tail = std::min(n_seen, n_tokens_ % spec_.block_tokens);
      usage.logical_bytes +=
          static_cast<std::uint64_t>(n_seen - n_tail) * full_bytes / n +
          static_cast<std::uint64_t>(n_tail) * (spec_.quantised()
                                                    ? layer.float_bytes()
                                                    : (full_bytes + n - 1) / n);
    }
    const BlockTable::Held held = table_.HeldBytes();
    usage.mapped_bytes = held.mapped;
    usage.shared_bytes = held.shared;
    usage.state_bytes = states_.held_bytes();
    usage.physical_bytes =
        std::max<std::uint64_t>(held.anonymous, pool_->preallocated_bytes()) +
        held.mapped + tails_.held_bytes() + usage.state_bytes;
    for (const int t : layer_tokens_) usage.populated_layers += t > 0 ? 1 : 0;
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

  // What a step needs beyond what the sequence holds.
  struct Fresh {
    BlockPtr own_tail;  // in place of one that others hold, too
    BlockPromise promise_with_own_tail;
    std::vector<BlockPtr> blocks;
  };

  // All of a step that can fail: an error changes nothing but the promise.
  Result<void> Take(int n, Fresh& fresh) {
    const int n_live = n_tokens_ % spec_.block_tokens;
    if (n_live != 0 && !spec_.quantised()) {
      const BlockPtr& tail = table_.At(table_.size() - 1);
      if (tail->read_only() || !pool_->Withdraw(tail)) {
        HEARTH_TRY(tail->Fetch());
        HEARTH_ASSIGN(fresh.own_tail, pool_->Allocate(promise_));
        CopyBlockTokens(spec_, layout_, tail->data(), layout_,
                        fresh.own_tail->writable(), n_live);
      }
    }
    fresh.promise_with_own_tail = promise_;
    for (int i = table_.size(); i < BlocksOf(n_tokens_ + n); ++i) {
      HEARTH_ASSIGN(BlockPtr block, pool_->Allocate(promise_));
      fresh.blocks.push_back(std::move(block));
    }
    HEARTH_TRY(states_.Begin(n_tokens_, n, promise_));
    if (spec_.quantised()) HEARTH_TRY(tails_.Begin(promise_, n_tokens_, n));
    return {};
  }

  KvSpec spec_;
  KvRetention retention_;
  KvLayout layout_;
  std::shared_ptr<BlockPool> pool_;
  BlockPromise promise_;
  BlockPromise promise_without_new_;  // before the step took its blocks
  BlockTable table_;
  TailBlocks tails_;  // of a quantised spec
  SequenceStates states_;
  SequenceOnDevice device_;
  std::vector<int> layer_tokens_;  // tokens that each layer can attend to
  int n_tokens_ = 0;
  int n_new_ = 0;        // between Extend and Commit
  int n_published_ = 0;  // leading blocks that were
  int releasable_ = std::numeric_limits<int>::max();
};

}  // namespace

std::unique_ptr<KvSequence> MakeInPlaceSequence(std::shared_ptr<BlockPool> pool,
                                                const KvSpec& spec,
                                                const KvRetention& retention) {
  return std::make_unique<InPlaceSequence>(std::move(pool), spec, retention);
}

}  // namespace hearth
