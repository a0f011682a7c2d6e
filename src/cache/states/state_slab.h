// All states at one position, and what a prefix can be gone on with from there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/bytes.h"
#include "cache/pool/block_pool.h"
#include "cache/states/state_layout.h"
#include "hearth/result.h"
#include "model/cpu/aligned_buffer.h"

namespace hearth {

// As StateLayout has them; not written any more once somebody else holds it.
class StateSlab {
 public:
  ~StateSlab();
  StateSlab(const StateSlab&) = delete;
  StateSlab& operator=(const StateSlab&) = delete;

  // Memory for one, of undefined content but for the zeros between states.
  // `pool` may be null: then nobody counts it. kResourceFull.
  static Result<std::shared_ptr<StateSlab>> New(
      const StateLayout& layout, const std::shared_ptr<BlockPool>& pool,
      BlockPromise& promise);
  // Stored bytes, which `owner` keeps alive. `mapped`: the system can drop and
  // read them again; else `pool`, unless null, counts them as memory.
  static std::shared_ptr<const StateSlab> Of(
      ByteSpan stored, std::shared_ptr<const void> owner, bool mapped,
      const std::shared_ptr<BlockPool>& pool);

  const float* data() const { return data_; }
  // REQUIRES: made by New.
  float* writable() { return memory_.GetFloats(bytes_ / sizeof(float)); }
  std::size_t bytes() const { return bytes_; }
  ByteSpan payload() const {
    return {reinterpret_cast<const std::byte*>(data_), bytes_};
  }
  bool mapped() const { return mapped_; }
  // Whether a step may write it once its one holder has no use for it.
  bool is_memory() const { return owner_ == nullptr; }

 private:
  StateSlab() = default;

  AlignedBuffer memory_;
  const float* data_ = nullptr;
  std::size_t bytes_ = 0;
  bool mapped_ = false;
  std::shared_ptr<const void> owner_;  // of stored bytes
  std::shared_ptr<BlockPool> pool_;    // that counts them; may be null
};

// The tokens of a sequence behind its last full block.
struct StateTail {
  ByteSpan payload;  // KvLayout(spec, as many tokens); empty: none
  std::shared_ptr<const void> owner;
};

// A position that a sequence can be cut back to, or another one be begun from:
// its states, and the tail, which is in no index.
struct StateCheckpoint {
  int n_tokens = 0;
  std::shared_ptr<const StateSlab> slab;
  StateTail tail;  // of n_tokens % block_tokens
};
using StateCheckpointPtr = std::shared_ptr<const StateCheckpoint>;

}  // namespace hearth
