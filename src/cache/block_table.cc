#include "cache/block_table.h"

#include <algorithm>

namespace hearth {

BlockTable::BlockTable(std::shared_ptr<BlockPool> pool, const KvSpec& spec,
                       KvRetention retention)
    : pool_(std::move(pool)),
      layout_(spec, spec.block_tokens),
      block_tokens_(spec.block_tokens),
      n_layers_(spec.n_layers()),
      retention_(std::move(retention)),
      n_sink_blocks_((retention_.sink_tokens + spec.block_tokens - 1) /
                     spec.block_tokens),
      windowed_(retention_.windowed()),
      released_(spec.layers.size(), n_sink_blocks_) {
  pool_->Enter(this);
}

void BlockTable::CopyFrom(const BlockTable& other) {
  blocks_ = other.blocks_;
  released_ = other.released_;
}

int BlockTable::n_held() const {
  return static_cast<int>(
      std::count_if(blocks_.begin(), blocks_.end(),
                    [](const HeldBlock& b) { return b.get() != nullptr; }));
}

void BlockTable::Truncate(int n_blocks) {
  blocks_.resize(static_cast<std::size_t>(n_blocks));
  for (int& released : released_) {
    released = std::min(released, std::max(n_blocks, n_sink_blocks_));
  }
}

// The first block behind the sinks that position `n_tokens` looks into.
int BlockTable::FirstNeeded(int layer, int n_tokens) const {
  const int window = Window(layer);
  if (window == 0) return n_sink_blocks_;
  return std::max(n_sink_blocks_,
                  std::max(0, n_tokens - window + 1) / block_tokens_);
}

int BlockTable::SeenTokens(int layer, int n_tokens) const {
  const int window = Window(layer);
  if (window == 0) return n_tokens;
  return std::min(n_tokens, window + retention_.sink_tokens);
}

// The memory of the layers that are done with `block`, neighbours in one go:
// only whole pages can be given back.
void BlockTable::DiscardLayers(int block,
                               const std::vector<int>& first_needed) {
  std::vector<BlockPool::Range> ranges;
  for (int layer = 0; layer < n_layers_;) {
    int end = layer;
    while (end < n_layers_ &&
           first_needed[static_cast<std::size_t>(end)] > block) {
      ++end;
    }
    if (end > layer) {
      ranges.push_back({layout_.offset(layer), end < n_layers_
                                                   ? layout_.offset(end)
                                                   : layout_.block_bytes()});
    }
    layer = end + 1;
  }
  pool_->Discard(At(block), ranges);
}

void BlockTable::Release(int n_tokens, int n_blocks) {
  if (!windowed_) return;
  std::vector<int> first_needed;
  for (int layer = 0; layer < n_layers_; ++layer) {
    first_needed.push_back(
        std::min({FirstNeeded(layer, n_tokens), size(), n_blocks}));
  }
  const auto [lowest, highest] =
      std::minmax_element(first_needed.begin(), first_needed.end());
  const int begin = *std::min_element(released_.begin(), released_.end());
  int unshared_until = begin;
  for (int block = begin; block < *highest; ++block) {
    if (block < *lowest) {
      Replace(block, nullptr);
    } else if (IsNews(block, first_needed)) {
      if (!pool_->Withdraw(At(block))) break;
      DiscardLayers(block, first_needed);
    }
    unshared_until = block + 1;
  }
  for (std::size_t i = 0; i < released_.size(); ++i) {
    released_[i] = std::max(
        released_[i],
        std::max(n_sink_blocks_, std::min(first_needed[i], unshared_until)));
  }
}

// Whether a layer is done with `block` that was not before.
bool BlockTable::IsNews(int block, const std::vector<int>& first_needed) const {
  for (std::size_t i = 0; i < released_.size(); ++i) {
    if (released_[i] <= block && first_needed[i] > block) return true;
  }
  return false;
}

bool BlockTable::Serves(int n_tokens) const {
  for (int layer = 0; layer < n_layers_; ++layer) {
    const int released = released_[static_cast<std::size_t>(layer)];
    const bool beyond_sinks = n_tokens > n_sink_blocks_ * block_tokens_;
    if (released > n_sink_blocks_ && beyond_sinks &&
        FirstNeeded(layer, n_tokens) < released) {
      return false;
    }
  }
  return true;
}

bool BlockTable::IsWhole(int block) const {
  if (At(block) == nullptr) return false;
  if (block < n_sink_blocks_) return true;
  return std::all_of(released_.begin(), released_.end(),
                     [block](int released) { return released <= block; });
}

BlockTable::Held BlockTable::HeldBytes() const {
  Held held;
  for (int block = 0; block < size(); ++block) {
    if (At(block) == nullptr) continue;
    std::size_t n = 0;
    for (int layer = 0; layer < n_layers_; ++layer) {
      const int released = released_[static_cast<std::size_t>(layer)];
      if (block < n_sink_blocks_ || released <= block) {
        n += layout_.layer(layer).bytes();
      }
    }
    (At(block)->mapped() ? held.mapped : held.anonymous) += n;
    if (At(block)->n_tables() > 1) held.shared += n;
  }
  return held;
}

}  // namespace hearth
