// Resident memory, as the system sees it.
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "cache/kv_sequence.h"

namespace hearth {
namespace {

std::uint64_t AnonymousBytes() {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line)) {
    if (line.rfind("RssAnon:", 0) == 0) {
      return std::stoull(line.substr(8)) * 1024;
    }
  }
  return 0;
}

// llama.cpp 11577 (R98): 8 GB reserved for a 100-token prompt at 131K context.
TEST(Memory, R98_ResidentBytesFollowTheTokensNotTheContext) {
  const KvSpec spec{.n_kv_layers = 8, .n_kv_heads = 8, .head_dim = 128};
  const std::uint64_t block_bytes = KvLayout(spec, 64).block_bytes();
  auto pool = BlockPool::Reserve(block_bytes, 131072 / 64, false);
  ASSERT_TRUE(pool.ok());
  auto seq = MakeInPlaceSequence(spec, std::move(*pool));
  const std::vector<float> row(1024, 1.5f);
  const std::uint64_t before = AnonymousBytes();
  for (int n = 1; n <= 400; ++n) {
    ASSERT_TRUE(seq->Extend(1).ok());
    for (int layer = 0; layer < 8; ++layer) {
      seq->BeginLayer(layer);
      for (int head = 0; head < 8; ++head) {
        seq->WriteHead(layer, head, row.data(), row.data(), 1024);
      }
    }
    seq->Commit();
    if (n % 50 != 0) continue;
    const std::uint64_t grown = AnonymousBytes() - before;
    const std::uint64_t logical = seq->Usage().logical_bytes;
    EXPECT_EQ(logical, static_cast<std::uint64_t>(n) * 8 * 8 * 128 * 4 * 2);
    EXPECT_LE(grown, logical + block_bytes + (1 << 20)) << n;
    EXPECT_LE(seq->Usage().physical_bytes, logical + block_bytes);
  }
  seq->Rewind(0);
  EXPECT_LE(AnonymousBytes() - before, std::uint64_t{1} << 20)
      << "released memory goes back to the system";
}

}  // namespace
}  // namespace hearth
