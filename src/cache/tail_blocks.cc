#include "cache/tail_blocks.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "cache/tile_copy.h"
#include "kernels/kernels.h"

namespace hearth {

TailBlocks::TailBlocks(std::shared_ptr<BlockPool> pool, const KvSpec& spec,
                       const KvRetention& retention)
    : spec_(spec),
      layout_(KvLayout::Tail(spec)),
      pool_(std::move(pool)),
      inner_bytes_(0) {
  // The others' one place, which fits each of them, then those of their own.
  const auto read_later = [&](int i) {
    const auto at = static_cast<std::size_t>(i);
    return at < retention.read_later.size() && retention.read_later[at];
  };
  inner_offsets_.assign(static_cast<std::size_t>(layout_.n_layers()), 0);
  for (int i = 0; i < layout_.n_layers(); ++i) {
    if (!read_later(i)) {
      inner_bytes_ = std::max(inner_bytes_, layout_.layer(i).bytes());
    }
  }
  for (int i = 0; i < layout_.n_layers(); ++i) {
    if (!read_later(i)) continue;
    inner_offsets_[static_cast<std::size_t>(i)] = inner_bytes_;
    inner_bytes_ += layout_.layer(i).bytes();
  }
}

Result<void> TailBlocks::Begin(BlockPromise& promise, int n_tokens, int n) {
  const int block_tokens = spec_.block_tokens;
  const int end = n_tokens + n;
  const bool ends_in_tail = end % block_tokens != 0;
  const int last = end / block_tokens;
  HEARTH_CHECK((tail_ != nullptr) == (n_tokens % block_tokens != 0));
  BlockPtr next;
  if (ends_in_tail) {
    if (tail_ != nullptr && tail_index_ == last) {
      next = tail_;
    } else {
      HEARTH_ASSIGN(next, pool_->AllocateTail(promise));
    }
  }
  next_tail_ = std::move(next);
  next_index_ = last;
  first_position_ = n_tokens;
  n_new_ = n;
  first_inner_ = (n_tokens + block_tokens - 1) / block_tokens;
  const auto n_inner =
      static_cast<std::size_t>(std::max(0, last - first_inner_));
  if (inner_.size() < n_inner * inner_bytes_) {
    inner_.resize(n_inner * inner_bytes_);
  }
  return {};
}

// The first byte of a layer of a block.
std::byte* TailBlocks::Bytes(int kv_layer, int block) const {
  if (next_tail_ != nullptr && block == next_index_) {
    return next_tail_->writable() + layout_.offset(kv_layer);
  }
  if (tail_ != nullptr && block == tail_index_) {
    return tail_->writable() + layout_.offset(kv_layer);
  }
  const auto i = static_cast<std::size_t>(block - first_inner_);
  HEARTH_CHECK(block >= first_inner_ &&
               (i + 1) * inner_bytes_ <= inner_.size());
  return const_cast<std::byte*>(inner_.data()) + i * inner_bytes_ +
         inner_offsets_[static_cast<std::size_t>(kv_layer)];
}

void TailBlocks::WriteHead(int kv_layer, int kv_head, const float* keys,
                           const float* values, std::int64_t row_stride) {
  const Kernels& kernels = ActiveKernels();
  const KvLayer& shape = spec_.layer(kv_layer);
  const KvLayerLayout& layout = layout_.layer(kv_layer);
  for (int t = 0; t < n_new_; ++t) {
    const int position = first_position_ + t;
    const int slot = position % spec_.block_tokens;
    std::byte* layer = Bytes(kv_layer, position / spec_.block_tokens);
    kernels.store_key(KvFormat::kF32, keys + t * row_stride, shape.key_dim,
                      layer + layout.key_tile(kv_head), spec_.block_tokens,
                      slot);
    if (values == nullptr) continue;
    kernels.store_value(KvFormat::kF32, values + t * row_stride,
                        shape.value_dim, layer + layout.value_tile(kv_head),
                        slot);
  }
}

void TailBlocks::Seal(int kv_layer, int kv_head, int block,
                      const KvLayout& sealed, Block& to) const {
  const Kernels& kernels = ActiveKernels();
  const int n = spec_.block_tokens;
  const KvTile tile = TileOf(kv_layer, kv_head, block, n);
  const KvLayer& shape = spec_.layer(kv_layer);
  const KvLayerLayout& layout = sealed.layer(kv_layer);
  std::byte* out = to.writable() + sealed.offset(kv_layer);
  const auto floats = [](const std::byte* p) {
    return reinterpret_cast<const float*>(p);
  };
  kernels.seal_rows(shape.key_format, floats(tile.keys), shape.key_dim, n,
                    out + layout.key_tile(kv_head),
                    out + layout.key_params(kv_head));
  if (shape.value_dim == 0) return;
  kernels.seal_rows(shape.value_format, floats(tile.values), n, shape.value_dim,
                    out + layout.value_tile(kv_head),
                    out + layout.value_params(kv_head));
}

KvTile TailBlocks::TileOf(int kv_layer, int kv_head, int block,
                          int n_tokens) const {
  return layout_.layer(kv_layer).TileAt(Bytes(kv_layer, block), kv_head,
                                        n_tokens);
}

void TailBlocks::Commit() {
  tail_ = std::move(next_tail_);
  tail_index_ = next_index_;
  next_tail_ = nullptr;
  inner_ = {};
}

void TailBlocks::Abandon() {
  next_tail_ = nullptr;
  inner_ = {};
}

void TailBlocks::Clear() {
  tail_ = nullptr;
  next_tail_ = nullptr;
}

Result<void> TailBlocks::Restore(BlockPromise& promise, int n_tokens,
                                 const KvLayout& stored, ByteSpan payload,
                                 int n) {
  HEARTH_CHECK(n_tokens % spec_.block_tokens == 0);
  HEARTH_ASSIGN(BlockPtr block, pool_->AllocateTail(promise));
  CopyBlockTokens(spec_, stored, payload.data(), layout_, block->writable(), n);
  tail_ = std::move(block);
  tail_index_ = n_tokens / spec_.block_tokens;
  return {};
}

Result<void> TailBlocks::CopyTo(const KvLayout& to, std::byte* block,
                                int n) const {
  HEARTH_CHECK(tail_ != nullptr);
  HEARTH_TRY(tail_->Fetch());
  CopyBlockTokens(spec_, layout_, tail_->data(), to, block, n);
  return {};
}

DeviceBlock TailBlocks::ForDevice(int block) {
  if (next_tail_ != nullptr && block == next_index_) {
    return next_tail_->for_device();
  }
  if (tail_ != nullptr && block == tail_index_) return tail_->for_device();
  return {};
}

Result<void> TailBlocks::CopyFrom(BlockPromise& promise,
                                  const TailBlocks& other, int n_tokens) {
  BlockPtr tail;
  if (other.tail_ != nullptr) {
    HEARTH_TRY(other.tail_->Fetch());
    HEARTH_ASSIGN(tail, pool_->AllocateTail(promise));
    CopyBlockTokens(spec_, layout_, other.tail_->data(), layout_,
                    tail->writable(), n_tokens % spec_.block_tokens);
  }
  tail_ = std::move(tail);
  tail_index_ = other.tail_index_;
  return {};
}

std::uint64_t TailBlocks::held_bytes() const {
  return tail_ == nullptr ? 0 : layout_.block_bytes();
}

}  // namespace hearth
