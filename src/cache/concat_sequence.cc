#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "cache/kv_sequence.h"
#include "cache/states/sequence_states.h"
#include "cache/tile_copy.h"
#include "kernels/kernels.h"

namespace hearth {
namespace {

// One layer's keys and values of all tokens in one exact-size buffer: full
// blocks at their usual stride, then the tail with stride = live tokens.
class ConcatSequence final : public KvSequence {
 public:
  ConcatSequence(const KvSpec& spec, int n_tokens_max)
      : spec_(spec),
        n_tokens_max_(n_tokens_max),
        layers_(spec.layers.size()),
        states_(spec) {}

  const KvSpec& spec() const override { return spec_; }
  int n_tokens() const override { return n_tokens_; }

  Result<void> Extend(int n) override {
    if (n_tokens_ + n > n_tokens_max_) {
      return {Code::kResourceFull, "the KV cache is limited to " +
                                       std::to_string(n_tokens_max_) +
                                       " tokens; give it a larger context"};
    }
    HEARTH_TRY(states_.Begin(n_tokens_, n));
    n_new_ = n;
    return {};
  }
  StatePort* states() override { return states_.empty() ? nullptr : &states_; }

  void BeginLayer(int kv_layer) override {
    Resize(kv_layer, n_tokens_ + n_new_);
  }

  void WriteHead(int kv_layer, int kv_head, const float* keys,
                 const float* values, std::int64_t row_stride) override {
    const Kernels& kernels = ActiveKernels();
    const KvLayer& shape = spec_.layer(kv_layer);
    Layer& layer = layers_[static_cast<std::size_t>(kv_layer)];
    for (int t = 0; t < n_new_; ++t) {
      const int position = n_tokens_ + t;
      const int block = position / spec_.block_tokens;
      const int slot = position % spec_.block_tokens;
      const KvLayerLayout layout(shape, Stride(layer.n_tokens, block));
      std::byte* bytes = layer.bytes.data() + BlockOffset(kv_layer, block);
      kernels.store_key(shape.key_format, keys + t * row_stride, shape.key_dim,
                        bytes + layout.key_tile(kv_head), layout.stride(),
                        slot);
      if (values == nullptr) continue;
      kernels.store_value(shape.value_format, values + t * row_stride,
                          shape.value_dim, bytes + layout.value_tile(kv_head),
                          slot);
    }
  }

  KvTile Tile(int kv_layer, int kv_head, int block) const override {
    const Layer& layer = layers_[static_cast<std::size_t>(kv_layer)];
    const KvLayerLayout layout(spec_.layer(kv_layer),
                               Stride(layer.n_tokens, block));
    const std::byte* bytes = layer.bytes.data() + BlockOffset(kv_layer, block);
    return layout.TileAt(bytes, kv_head, layout.stride());
  }
  KvTile OwnTile(int kv_layer, int kv_head, int block) const override {
    return Tile(kv_layer, kv_head, block);
  }

  void Commit() override {
    states_.Commit();
    n_tokens_ += n_new_;
    n_new_ = 0;
  }

  void Abandon() override {
    states_.Abandon();
    Rewind(n_tokens_);
  }

  int RewindableTo(int n_tokens) const override {
    return states_.RewindableTo(n_tokens);
  }
  void Rewind(int n_tokens) override {
    HEARTH_CHECK(n_tokens >= 0 && n_tokens <= n_tokens_ &&
                 RewindableTo(n_tokens) == n_tokens);
    states_.Rewind(n_tokens);
    n_tokens_ = n_tokens;
    n_new_ = 0;
    for (int layer = 0; layer < spec_.n_layers(); ++layer) {
      Resize(layer, n_tokens);
    }
  }

  StateCheckpointPtr KeepState() override { return states_.Keep(); }
  std::vector<StateCheckpointPtr> KeptStates() const override {
    return states_.kept();
  }
  void RestoreState(StateCheckpointPtr here) override {
    states_.Restore(n_tokens_, std::move(here));
  }

  Result<std::unique_ptr<KvSequence>> Fork() const override {
    auto fork = std::make_unique<ConcatSequence>(*this);
    fork->states_ = states_.Fork();
    return std::unique_ptr<KvSequence>(std::move(fork));
  }

  Result<void> AppendStored(ByteSpan payload, int n_tokens,
                            std::shared_ptr<const void>, bool) override {
    HEARTH_CHECK(n_tokens_ % spec_.block_tokens == 0);
    const KvLayout stored(spec_, n_tokens);
    HEARTH_CHECK(payload.size() == stored.block_bytes());
    HEARTH_TRY(Extend(n_tokens));
    const int block = n_tokens_ / spec_.block_tokens;
    for (int layer = 0; layer < spec_.n_layers(); ++layer) {
      Resize(layer, n_tokens_ + n_tokens);
      std::memcpy(layers_[static_cast<std::size_t>(layer)].bytes.data() +
                      BlockOffset(layer, block),
                  payload.data() + stored.offset(layer),
                  stored.layer(layer).bytes());
    }
    Commit();
    return {};
  }

  void Publish(std::span<const Digest>) override {}
  int AppendShared(std::span<const Digest>) override { return 0; }
  void Exchange(int, const Digest&, ByteSpan,
                std::shared_ptr<const void>) override {}
  bool IsMapped(int) const override { return true; }
  std::uint64_t Reserve(int) override { return 0; }
  const BlockTable* table() const override { return nullptr; }
  std::uint64_t TailBytes() const override { return 0; }

  bool HasImage(int, int) const override { return true; }
  Result<BlockImage> Image(int block, int n) const override {
    HEARTH_CHECK(n >= 1 && n <= spec_.block_tokens &&
                 block * spec_.block_tokens + n <= n_tokens_);
    const KvLayout to(spec_, n);
    auto copy = std::make_shared<std::vector<std::byte>>(to.block_bytes());
    for (int layer = 0; layer < spec_.n_layers(); ++layer) {
      const KvLayerLayout from(spec_.layer(layer), Stride(n_tokens_, block));
      CopyLayerTokens(spec_.layer(layer), from,
                      layers_[static_cast<std::size_t>(layer)].bytes.data() +
                          BlockOffset(layer, block),
                      0, to.layer(layer), copy->data() + to.offset(layer), 0,
                      n);
    }
    return BlockImage{ByteSpan(*copy), n, copy};
  }

  void SetReleasable(int) override {}

  KvUsage Usage() const override {
    KvUsage usage;
    usage.logical_bytes = spec_.BytesOf(n_tokens_);
    for (const Layer& layer : layers_) {
      usage.physical_bytes += layer.bytes.size();
      usage.populated_layers += layer.n_tokens > 0 ? 1 : 0;
    }
    usage.state_bytes = states_.held_bytes();
    usage.physical_bytes += usage.state_bytes;
    return usage;
  }

 private:
  struct Layer {
    std::vector<std::byte> bytes;
    int n_tokens = 0;
  };

  int Stride(int n_tokens, int block) const {
    return std::min(spec_.block_tokens, n_tokens - block * spec_.block_tokens);
  }
  std::size_t BlockOffset(int kv_layer, int block) const {
    const KvLayerLayout full(spec_.layer(kv_layer), spec_.block_tokens);
    return static_cast<std::size_t>(block) * full.bytes();
  }

  // The copy at every append that this mode exists to show.
  void Resize(int kv_layer, int n_tokens) {
    Layer& layer = layers_[static_cast<std::size_t>(kv_layer)];
    if (layer.n_tokens == n_tokens) return;
    const int n_full = n_tokens / spec_.block_tokens;
    const int n_tail = n_tokens % spec_.block_tokens;
    const KvLayer& shape = spec_.layer(kv_layer);
    std::size_t size = BlockOffset(kv_layer, n_full);
    if (n_tail > 0) size += KvLayerLayout(shape, n_tail).bytes();
    std::vector<std::byte> grown(size);
    const int n_kept = std::min(n_tokens, layer.n_tokens);
    for (int block = 0; block * spec_.block_tokens < n_kept; ++block) {
      const int n =
          std::min(spec_.block_tokens, n_kept - block * spec_.block_tokens);
      const std::size_t at = BlockOffset(kv_layer, block);
      CopyLayerTokens(shape,
                      KvLayerLayout(shape, Stride(layer.n_tokens, block)),
                      layer.bytes.data() + at, 0,
                      KvLayerLayout(shape, Stride(n_tokens, block)),
                      grown.data() + at, 0, n);
    }
    layer.bytes = std::move(grown);
    layer.n_tokens = n_tokens;
  }

  KvSpec spec_;
  int n_tokens_max_;
  std::vector<Layer> layers_;
  SequenceStates states_;
  int n_tokens_ = 0;
  int n_new_ = 0;
};

}  // namespace

std::unique_ptr<KvSequence> MakeConcatSequence(const KvSpec& spec,
                                               int n_tokens_max) {
  return std::make_unique<ConcatSequence>(spec, n_tokens_max);
}

}  // namespace hearth
