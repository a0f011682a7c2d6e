// Resident memory, as the system sees it.
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "cache/kv_sequence.h"
#include "testing/own_sequence.h"
#include "testing/sanitized.h"

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
  const KvSpec spec(UniformKv{.n_layers = 8, .n_heads = 8, .head_dim = 128});
  const std::uint64_t block_bytes = KvLayout(spec, 64).block_bytes();
  const auto seq = OwnSequence(spec, {}, {.n_blocks = 131072 / 64});
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

// Appends `n` tokens with the same made-up numbers in every layer and head.
void Grow(KvSequence& seq, int n, int step) {
  const KvSpec& spec = seq.spec();
  const KvLayer& shape = spec.layer(0);
  std::vector<float> rows(static_cast<std::size_t>(step * shape.key_dim));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i] = static_cast<float>(i % 97) * 0.1f - 3.0f;
  }
  for (int done = 0; done < n; done += step) {
    ASSERT_TRUE(seq.Extend(step).ok());
    for (int layer = 0; layer < spec.n_layers(); ++layer) {
      seq.BeginLayer(layer);
      for (int head = 0; head < shape.n_heads; ++head) {
        seq.WriteHead(layer, head, rows.data(), rows.data(), shape.key_dim);
      }
    }
    seq.Commit();
  }
}

// Resident bytes, not formulas: no full-precision copy hides anywhere.
TEST(Memory, ResidentBytesOfEveryFormatAreTheSchemes) {
  for (int i = 0; i < kKvFormats; ++i) {
    KvSpec spec(UniformKv{.n_layers = 8, .n_heads = 4, .head_dim = 128});
    spec.SetFormat(static_cast<KvFormat>(i));
    constexpr int kTokens = 64 * 40 + 60;
    const auto made = OwnSequence(spec);
    const std::uint64_t before = AnonymousBytes();
    Grow(*made, kTokens, 10);
    const auto grown = static_cast<double>(AnonymousBytes() - before);
    // By hand: 40 full blocks and a tail of 60 tokens.
    constexpr double kNumbers = 8.0 * 4 * 128 * 2;  // of one token
    const double full_bytes[] = {4, 2, 2, 1, 0.5};
    const KvFormat format = spec.layer(0).key_format;
    const bool quantised = IsQuantised(format);
    const double params = quantised ? 8.0 * 4 * 40 * (128 + 64) * 4 : 0;
    const double tail = kNumbers * 64 * (quantised ? 4 : full_bytes[i]);
    const double scheme = kNumbers * 64 * 40 * full_bytes[i] + params + tail;
    EXPECT_NEAR(grown, scheme, 0.03 * scheme + 300e3) << NameOf(format);
    EXPECT_NEAR(static_cast<double>(made->Usage().physical_bytes), scheme,
                0.03 * scheme)
        << NameOf(format);
  }
}

// Sinks and a window over 20,000 tokens, one by one, and a model in which only
// every other layer forgets.
TEST(Memory, AWindowsResidentBytesAreFlat) {
  for (const KvFormat format : {KvFormat::kF16, KvFormat::kInt4}) {
    KvSpec spec(UniformKv{.n_layers = 2, .n_heads = 1, .head_dim = 128});
    spec.SetFormat(format);
    const auto made =
        OwnSequence(spec, {.windows = {512, 512}, .sink_tokens = 4});
    Grow(*made, 1000, 1);
    const std::uint64_t at_1000 = AnonymousBytes();
    const std::uint64_t usage = made->Usage().physical_bytes;
    Grow(*made, 19000, 1);
    if (!kSanitized) {
      EXPECT_NEAR(static_cast<double>(AnonymousBytes()),
                  static_cast<double>(at_1000), 200e3);
    }
    EXPECT_LE(made->Usage().physical_bytes,
              usage + 2 * spec.full_block_bytes());
    EXPECT_EQ(made->n_tokens(), 20000);
    EXPECT_EQ(made->RewindableTo(19999), 19999);
    EXPECT_EQ(made->RewindableTo(19000), 0) << "what it sees is gone";
  }
}

TEST(Memory, LayersWithAWindowGiveTheirPartOfABlockBack) {
  KvSpec spec(UniformKv{.n_layers = 6, .n_heads = 2, .head_dim = 128});
  spec.SetFormat(KvFormat::kF16);
  const auto made = OwnSequence(spec, {.windows = {128, 128, 0, 128, 128, 0}});
  const std::uint64_t before = AnonymousBytes();
  Grow(*made, 4096, 64);
  const double layer = 2.0 * 128 * 2 * 2 * 4096;  // of all tokens
  const double kept = 2 * layer + 4 * layer * (128.0 + 64) / 4096;
  EXPECT_NEAR(static_cast<double>(AnonymousBytes() - before), kept,
              0.06 * kept + 300e3);
  EXPECT_NEAR(static_cast<double>(made->Usage().physical_bytes), kept,
              0.06 * kept);
}

}  // namespace
}  // namespace hearth
