#include "cache/states/state_slab.h"

#include <cstring>
#include <utility>

namespace hearth {

StateSlab::~StateSlab() {
  if (pool_ != nullptr) pool_->ReturnState(bytes_);
}

Result<std::shared_ptr<StateSlab>> StateSlab::New(
    const StateLayout& layout, const std::shared_ptr<BlockPool>& pool,
    BlockPromise& promise) {
  std::shared_ptr<StateSlab> slab(new StateSlab());
  HEARTH_TRY(slab->memory_.Reserve(layout.bytes()));
  if (pool != nullptr) {
    HEARTH_TRY(pool->TakeState(layout.bytes(), promise));
    slab->pool_ = pool;
  }
  slab->bytes_ = layout.bytes();
  std::byte* bytes = slab->memory_.Get(layout.bytes());
  slab->data_ = reinterpret_cast<const float*>(bytes);
  for (int i = 0; i < layout.n_states(); ++i) {
    std::memset(bytes + layout.end(i), 0,
                layout.offset(i) + layout.length(i) - layout.end(i));
  }
  return slab;
}

std::shared_ptr<const StateSlab> StateSlab::Of(
    ByteSpan stored, std::shared_ptr<const void> owner, bool mapped,
    const std::shared_ptr<BlockPool>& pool) {
  std::shared_ptr<StateSlab> slab(new StateSlab());
  slab->data_ = reinterpret_cast<const float*>(stored.data());
  slab->bytes_ = stored.size();
  slab->mapped_ = mapped;
  slab->owner_ = std::move(owner);
  if (!mapped && pool != nullptr) {
    // It is there already: over the limit, others let go first.
    pool->AddState(stored.size());
    slab->pool_ = pool;
  }
  return slab;
}

}  // namespace hearth
