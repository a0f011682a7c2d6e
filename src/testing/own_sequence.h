// A sequence with a pool of its own, for tests of one sequence.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "cache/kv_sequence.h"

namespace hearth {

inline std::unique_ptr<KvSequence> OwnSequence(
    const KvSpec& spec, const KvRetention& retention = {},
    const KvRoom& room = {.n_blocks = 64}) {
  auto pool = MakeKvPool(spec, retention, room);
  EXPECT_TRUE(pool.ok());
  return MakeInPlaceSequence(std::move(*pool), spec, retention);
}

// Memory of `n` full blocks in a pool: each begins on a page.
inline std::uint64_t BytesOfBlocks(const KvSpec& spec, int n) {
  const auto pool = MakeKvPool(spec, {}, {.n_blocks = n, .preallocate = true});
  EXPECT_TRUE(pool.ok());
  return (*pool)->preallocated_bytes();
}

}  // namespace hearth
