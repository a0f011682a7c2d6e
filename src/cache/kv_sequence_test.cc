#include "cache/kv_sequence.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "testing/own_sequence.h"
#include "testing/tagged_tokens.h"

namespace hearth {
namespace {

const KvSpec kSpec(UniformKv{
    .n_layers = 3, .n_heads = 2, .head_dim = 5, .block_tokens = 16});

// Layers of their own shapes: two of keys and values, one of keys alone.
KvSpec Mixed() {
  KvSpec spec;
  spec.layers = {{.n_heads = 2, .key_dim = 5, .value_dim = 5},
                 {.n_heads = 1, .key_dim = 9, .value_dim = 0},
                 {.n_heads = 3, .key_dim = 4, .value_dim = 7}};
  spec.block_tokens = 16;
  return spec;
}

TEST(KvSequence, RandomAppendsRewindsAndForksEqualAPlainList) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 rng(seed);
    struct Case {
      std::unique_ptr<KvSequence> seq;
      std::vector<int> tags;
    };
    std::vector<Case> cases;
    const KvSpec spec = seed % 3 == 0 ? Mixed() : kSpec;
    cases.push_back(
        {seed % 2 == 0 ? OwnSequence(spec) : MakeConcatSequence(spec, 160),
         {}});
    int next_tag = 0;
    for (int step = 0; step < 60; ++step) {
      Case& c = cases[rng() % cases.size()];
      switch (rng() % 4) {
        case 0:
        case 1: {
          const int n = 1 + static_cast<int>(rng() % 40);
          if (c.tags.size() + static_cast<std::size_t>(n) > 150) break;
          const std::vector<int> tags = Range(next_tag, next_tag + n);
          next_tag += n;
          ASSERT_TRUE(Append(*c.seq, tags).ok());
          c.tags.insert(c.tags.end(), tags.begin(), tags.end());
          break;
        }
        case 2: {
          const auto n = rng() % (c.tags.size() + 1);
          c.seq->Rewind(static_cast<int>(n));
          c.tags.resize(n);
          break;
        }
        case 3: {
          if (cases.size() >= 4) break;
          auto fork = c.seq->Fork();
          ASSERT_TRUE(fork.ok());
          std::vector<int> tags = c.tags;
          cases.push_back({std::move(*fork), std::move(tags)});
          break;
        }
      }
      for (const Case& each : cases) ExpectHolds(*each.seq, each.tags);
    }
  }
}

TEST(KvSequence, StoredImagesComeBackInEitherGrowth) {
  for (int ways = 0; ways < 8; ++ways) {
    const KvSpec spec = (ways & 4) != 0 ? Mixed() : kSpec;
    auto source =
        (ways & 1) != 0 ? MakeConcatSequence(spec, 64) : OwnSequence(spec);
    ASSERT_TRUE(Append(*source, Range(0, 37)).ok());
    auto target =
        (ways & 2) != 0 ? MakeConcatSequence(spec, 64) : OwnSequence(spec);
    for (int block = 0; block < source->n_blocks(); ++block) {
      const int n = std::min(16, 37 - block * 16);
      const BlockImage image = *source->Image(block, n);
      ASSERT_TRUE(target->AppendStored(image.payload, n, image.owner).ok());
    }
    ExpectHolds(*target, Range(0, 37));
    // A restored sequence goes on like any other: the partial block and the
    // mapped ones alike.
    ASSERT_TRUE(Append(*target, Range(37, 50)).ok());
    ExpectHolds(*target, Range(0, 50));
    target->Rewind(20);
    ASSERT_TRUE(Append(*target, Range(900, 905)).ok());
    auto tags = Range(0, 20);
    for (const int tag : Range(900, 905)) tags.push_back(tag);
    ExpectHolds(*target, tags);
    ExpectHolds(*source, Range(0, 37));
  }
}

TEST(KvSequence, FullCacheRefusesAndKeepsWhatItHas) {
  auto seq = OwnSequence(kSpec, {},
                         {.n_blocks = 2, .bytes_max = BytesOfBlocks(kSpec, 2)});
  ASSERT_TRUE(Append(*seq, Range(0, 30)).ok());
  const auto full = seq->Extend(3);
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error().code, Code::kResourceFull);
  ExpectHolds(*seq, Range(0, 30));
  ASSERT_TRUE(Append(*seq, Range(30, 32)).ok());
  ExpectHolds(*seq, Range(0, 32));
}

TEST(KvSequence, LogicalAndPhysicalBytesDifferByLessThanABlock) {
  auto seq = OwnSequence(kSpec);
  const std::uint64_t block = KvLayout(kSpec, 16).block_bytes();
  for (int n = 1; n <= 100; ++n) {
    ASSERT_TRUE(Append(*seq, {n}).ok());
    const KvUsage usage = seq->Usage();
    EXPECT_EQ(usage.logical_bytes,
              static_cast<std::uint64_t>(n) * 3 * 2 * 5 * 4 * 2);
    EXPECT_LE(usage.physical_bytes,
              block * static_cast<std::uint64_t>((n + 15) / 16));
    EXPECT_EQ(usage.populated_layers, 3);
  }
  seq->Rewind(0);
  EXPECT_EQ(seq->Usage().physical_bytes, 0u);
  EXPECT_EQ(seq->Usage().populated_layers, 0);
}

TEST(KvSequence, PreallocatedMemoryIsFlat) {
  auto seq = OwnSequence(kSpec, {}, {.n_blocks = 4, .preallocate = true});
  const std::uint64_t before = seq->Usage().physical_bytes;
  ASSERT_TRUE(Append(*seq, Range(0, 60)).ok());
  EXPECT_EQ(seq->Usage().physical_bytes, before);
  EXPECT_GT(before, 0u);
}

TEST(KvSequence, ConcatGrowsByExactlyTheTokens) {
  auto seq = MakeConcatSequence(kSpec, 200);
  ASSERT_TRUE(Append(*seq, Range(0, 16)).ok());
  const std::uint64_t at_16 = seq->Usage().physical_bytes;
  ASSERT_TRUE(Append(*seq, Range(16, 32)).ok());
  EXPECT_EQ(seq->Usage().physical_bytes, 2 * at_16);
}

// The seed's four worked examples (T = 1024, fp32).
TEST(KvSpec, BytesEqualTheSeedsWorkedExamples) {
  const auto mib_of = [](int layers, int kv_heads, int head_dim) {
    const KvSpec spec(UniformKv{
        .n_layers = layers, .n_heads = kv_heads, .head_dim = head_dim});
    return spec.bytes_per_token() * 1024 >> 20;
  };
  EXPECT_EQ(mib_of(32, 32, 128), 1024u);  // Llama-3 shape without GQA
  EXPECT_EQ(mib_of(32, 8, 128), 256u);    // Llama-3: 4x less
  EXPECT_EQ(mib_of(28, 12, 128), 336u);   // Qwen2.5-1.5B without GQA
  EXPECT_EQ(mib_of(28, 2, 128), 56u);     // Qwen2.5-1.5B: 6x less
}

TEST(FormatId, EveryFieldCounts) {
  const Digest base = FormatId(kSpec);
  KvSpec s = kSpec;
  s.SetFormat(KvFormat::kF16);
  EXPECT_NE(FormatId(s), base);
  s = kSpec;
  s.block_tokens = 32;
  EXPECT_NE(FormatId(s), base);
  s = kSpec;
  s.layers.pop_back();
  EXPECT_NE(FormatId(s), base);
  const auto differs = [&](auto change) {
    KvSpec all = kSpec, one = kSpec;
    for (KvLayer& layer : all.layers) change(layer);
    change(one.layers[1]);
    EXPECT_NE(FormatId(all), base);
    EXPECT_NE(FormatId(one), base);
    EXPECT_NE(FormatId(one), FormatId(all));
  };
  differs([](KvLayer& layer) { layer.n_heads = 1; });
  differs([](KvLayer& layer) { layer.key_dim = layer.value_dim = 6; });
  differs([](KvLayer& layer) { layer.key_dim = 6; });
  differs([](KvLayer& layer) { layer.value_dim = 0; });
  differs([](KvLayer& layer) { layer.key_format = KvFormat::kInt8; });
  s = kSpec;
  s.states = {{.dims = {4, 6}}};
  const Digest with_state = FormatId(s);
  EXPECT_NE(with_state, base);
  s.states = {{.dims = {6, 4}}};
  EXPECT_NE(FormatId(s), with_state);
}

KvSpec Quantised() {
  KvSpec s = kSpec;
  s.SetFormats(KvFormat::kInt8, KvFormat::kInt4);
  return s;
}

// A block's bytes never change after it was sealed, however the steps fell, and
// a cut goes to its start.
TEST(KvSequence, SealedBlocksAreFrozenAndCutAtTheirStart) {
  const KvSpec spec = Quantised();
  const auto bytes_of = [](const KvSequence& seq, int block, int n) {
    const BlockImage image = *seq.Image(block, n);
    return std::vector<std::byte>(image.payload.begin(), image.payload.end());
  };
  auto whole = OwnSequence(spec);
  ASSERT_TRUE(Append(*whole, Range(0, 60)).ok());
  auto singly = OwnSequence(spec);
  std::vector<std::vector<std::byte>> sealed;
  for (int t = 0; t < 60; ++t) {
    ASSERT_TRUE(Append(*singly, {t}).ok());
    if (t % 16 == 15) sealed.push_back(bytes_of(*singly, t / 16, 16));
  }
  for (int block = 0; block < 3; ++block) {
    EXPECT_EQ(bytes_of(*whole, block, 16),
              sealed[static_cast<std::size_t>(block)]);
    EXPECT_EQ(bytes_of(*singly, block, 16),
              sealed[static_cast<std::size_t>(block)]);
  }
  EXPECT_EQ(bytes_of(*whole, 3, 12), bytes_of(*singly, 3, 12));
  EXPECT_EQ(whole->RewindableTo(50), 50) << "in the tail";
  EXPECT_EQ(whole->RewindableTo(48), 48);
  EXPECT_EQ(whole->RewindableTo(47), 32);
  EXPECT_EQ(whole->RewindableTo(0), 0);
  EXPECT_FALSE(whole->HasImage(1, 5));
  EXPECT_TRUE(whole->HasImage(3, 5));
  whole->Rewind(32);
  ASSERT_TRUE(Append(*whole, Range(32, 60)).ok());
  EXPECT_EQ(bytes_of(*whole, 2, 16), sealed[2]);
}

TEST(KvSequence, ForksOfAQuantisedTailGoTheirOwnWays) {
  auto seq = OwnSequence(Quantised());
  ASSERT_TRUE(Append(*seq, Range(0, 20)).ok());
  auto fork = std::move(*seq->Fork());
  ASSERT_TRUE(Append(*fork, Range(900, 903)).ok());
  ASSERT_TRUE(Append(*seq, Range(20, 23)).ok());
  for (int head = 0; head < 2; ++head) {
    const KvTile mine = seq->Tile(2, head, 1);
    const KvTile other = fork->Tile(2, head, 1);
    EXPECT_EQ(At(mine.keys, static_cast<std::size_t>(5)),
              KeyOf(21, 2, head, 0));
    EXPECT_EQ(At(other.keys, static_cast<std::size_t>(5)),
              KeyOf(901, 2, head, 0));
  }
}

// A save in progress keeps what a window is done with.
TEST(KvSequence, WhatIsBeingSavedIsNotLetGoOf) {
  KvSpec spec = kSpec;
  const auto made = OwnSequence(spec, {.windows = {16, 16, 16}});
  KvSequence& seq = *made;
  seq.SetReleasable(16);
  ASSERT_TRUE(Append(seq, Range(0, 64)).ok());
  ASSERT_TRUE(Append(seq, {64}).ok());
  EXPECT_FALSE(seq.HasImage(0, 16));
  EXPECT_TRUE(seq.HasImage(1, 16));
  const BlockImage held = *seq.Image(1, 16);
  const std::vector<std::byte> before(held.payload.begin(), held.payload.end());
  seq.SetReleasable(64);
  ASSERT_TRUE(Append(seq, Range(65, 80)).ok());
  EXPECT_FALSE(seq.HasImage(1, 16));
  EXPECT_TRUE(std::equal(before.begin(), before.end(), held.payload.begin()));
  EXPECT_EQ(seq.RewindableTo(70), 70);
  EXPECT_EQ(seq.RewindableTo(60), 0);
  auto fork = std::move(*seq.Fork());
  EXPECT_EQ(fork->RewindableTo(60), 0);
}

}  // namespace
}  // namespace hearth
