// Sequences of one pool: what they have in common is in memory once, and
// whatever happens to one leaves the others as they are.
#include "cache/block_pool.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "testing/own_sequence.h"
#include "testing/tagged_tokens.h"

namespace hearth {
namespace {

constexpr int kBlock = 16;

KvSpec Spec() {
  return UniformKv{
      .n_layers = 3, .n_heads = 2, .head_dim = 5, .block_tokens = kBlock};
}

// Ids of the full blocks, as a chain gives them.
std::vector<Digest> Ids(const std::vector<int>& tags) {
  std::vector<Digest> ids;
  Digest parent;
  for (std::size_t at = 0; at + kBlock <= tags.size(); at += kBlock) {
    parent = Sha256()
                 .Field(parent)
                 .Field(std::as_bytes(std::span(tags).subspan(at, kBlock)))
                 .Finish();
    ids.push_back(parent);
  }
  return ids;
}

struct Pool {
  explicit Pool(const KvSpec& of, const KvRetention& keeps = {},
                std::uint64_t bytes_max = 0)
      : spec(of),
        retention(keeps),
        blocks(
            *MakeKvPool(of, keeps, {.n_blocks = 8, .bytes_max = bytes_max})) {}
  std::unique_ptr<KvSequence> NewSequence() const {
    return MakeInPlaceSequence(blocks, spec, retention);
  }
  std::uint64_t held() const { return blocks->Usage().held_bytes; }
  void ExpectSound() const {
    const auto sound = blocks->CheckIntegrity();
    ASSERT_TRUE(sound.ok()) << sound.error().message;
  }
  KvSpec spec;
  KvRetention retention;
  std::shared_ptr<BlockPool> blocks;
};

// A copy of a full block, as a store would map it.
std::shared_ptr<std::vector<std::byte>> Stored(const KvSequence& seq,
                                               int block) {
  const BlockImage image = seq.Image(block, kBlock);
  return std::make_shared<std::vector<std::byte>>(image.payload.begin(),
                                                  image.payload.end());
}

TEST(BlockPool, ACommonPrefixIsInMemoryOnceWithoutFork) {
  const Pool pool(Spec());
  const std::vector<int> prefix = Range(0, 10 * kBlock);
  auto first = pool.NewSequence();
  ASSERT_TRUE(Append(*first, prefix).ok());
  first->Publish(Ids(prefix));
  const std::uint64_t once = pool.held();
  EXPECT_EQ(first->Usage().shared_bytes, 0u);
  auto second = pool.NewSequence();
  EXPECT_EQ(second->AppendShared(Ids(prefix)), 10);
  ExpectHolds(*second, prefix);
  EXPECT_EQ(pool.held(), once);
  EXPECT_EQ(second->Usage().shared_bytes, second->Usage().physical_bytes);
  EXPECT_EQ(first->Usage().shared_bytes, first->Usage().physical_bytes);
  pool.ExpectSound();
  // Each goes on for itself, and the prefix outlives who computed it.
  ASSERT_TRUE(Append(*second, Range(500, 520)).ok());
  ASSERT_TRUE(Append(*first, Range(900, 905)).ok());
  first.reset();
  auto all = prefix;
  for (const int tag : Range(500, 520)) all.push_back(tag);
  ExpectHolds(*second, all);
  second.reset();
  EXPECT_EQ(pool.held(), 0u);
  EXPECT_EQ(pool.NewSequence()->AppendShared(Ids(prefix)), 0);
  pool.ExpectSound();
}

TEST(BlockPool, WhatTwoComputedIsHeldOnceWhenBothHaveNamedIt) {
  const Pool pool(Spec());
  const std::vector<int> prefix = Range(0, 4 * kBlock);
  auto first = pool.NewSequence(), second = pool.NewSequence();
  ASSERT_TRUE(Append(*first, prefix).ok());
  ASSERT_TRUE(Append(*second, prefix).ok());
  const std::uint64_t twice = pool.held();
  first->Publish(Ids(prefix));
  second->Publish(Ids(prefix));
  EXPECT_EQ(pool.held(), twice / 2);
  ExpectHolds(*second, prefix);
  pool.ExpectSound();
}

TEST(BlockPool, WhoRewindsIntoASharedBlockWritesACopy) {
  const Pool pool(Spec());
  const std::vector<int> prefix = Range(0, 2 * kBlock);
  auto first = pool.NewSequence();
  ASSERT_TRUE(Append(*first, prefix).ok());
  first->Publish(Ids(prefix));
  auto second = pool.NewSequence();
  ASSERT_EQ(second->AppendShared(Ids(prefix)), 2);
  first->Rewind(20);
  ASSERT_TRUE(Append(*first, Range(700, 720)).ok());
  ExpectHolds(*second, prefix);
  pool.ExpectSound();
  // The last holder writes in place: then nobody finds the block any more.
  second->Rewind(20);
  ASSERT_TRUE(Append(*second, {800}).ok());
  EXPECT_EQ(pool.NewSequence()->AppendShared(Ids(prefix)), 1);
  pool.ExpectSound();
}

TEST(BlockPool, AnExchangedBlockIsReadFromItsMappingByEverybody) {
  const Pool pool(Spec());
  const std::vector<int> tags = Range(0, 3 * kBlock + 5);
  const auto ids = Ids(tags);
  auto first = pool.NewSequence();
  ASSERT_TRUE(Append(*first, tags).ok());
  first->Publish(ids);
  auto second = pool.NewSequence();
  ASSERT_EQ(second->AppendShared(ids), 3);
  const std::uint64_t before = pool.held();
  const auto stored = Stored(*first, 1);
  first->Exchange(1, ids[1], *stored, stored);
  EXPECT_TRUE(first->IsMapped(1));
  EXPECT_EQ(pool.held(), before) << "the other one still holds it";
  pool.ExpectSound();
  const auto stored_too = Stored(*second, 1);
  second->Exchange(1, ids[1], *stored_too, stored_too);
  EXPECT_LT(pool.held(), before);
  EXPECT_EQ(pool.blocks->Usage().mapped_bytes, stored->size())
      << "one mapping for both";
  pool.ExpectSound();
  ExpectHolds(*first, tags);
  ASSERT_TRUE(Append(*first, Range(100, 120)).ok());
  auto third = pool.NewSequence();
  EXPECT_EQ(third->AppendShared(ids), 3);
  ExpectHolds(*third, Range(0, 3 * kBlock));
  pool.ExpectSound();
}

TEST(BlockPool, TheLimitIsForAllSequencesAndAFailedStepChangesNone) {
  const KvSpec spec = Spec();
  const Pool pool(spec, {}, BytesOfBlocks(spec, 5));
  auto first = pool.NewSequence(), second = pool.NewSequence();
  ASSERT_TRUE(Append(*first, Range(0, 40)).ok());
  ASSERT_TRUE(Append(*second, Range(100, 120)).ok());
  const auto full = second->Extend(13);
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error().code, Code::kResourceFull);
  ExpectHolds(*first, Range(0, 40));
  ExpectHolds(*second, Range(100, 120));
  pool.ExpectSound();
  first.reset();
  EXPECT_TRUE(Append(*second, Range(120, 133)).ok());
  ExpectHolds(*second, Range(100, 133));
}

TEST(BlockPool, PromisedRoomIsNotTakenByOthers) {
  const KvSpec spec = Spec();
  const Pool pool(spec, {}, BytesOfBlocks(spec, 5));
  auto first = pool.NewSequence(), second = pool.NewSequence();
  ASSERT_TRUE(Append(*first, Range(0, 5)).ok());
  EXPECT_EQ(first->Reserve(4 * kBlock), 0u);
  ASSERT_TRUE(Append(*second, Range(100, 116)).ok());
  EXPECT_FALSE(second->Extend(1).ok());
  EXPECT_EQ(second->Reserve(2 * kBlock), BytesOfBlocks(spec, 1));
  EXPECT_TRUE(Append(*first, Range(5, 4 * kBlock)).ok());
  ExpectHolds(*first, Range(0, 4 * kBlock));
  pool.ExpectSound();
  first->Rewind(kBlock);
  EXPECT_EQ(first->Reserve(3 * kBlock), 0u);
  EXPECT_EQ(first->Reserve(0), 0u) << "taken back";
  EXPECT_EQ(second->Reserve(4 * kBlock), 0u);
  first.reset();
  second.reset();
  EXPECT_TRUE(Append(*pool.NewSequence(), Range(0, 5 * kBlock)).ok())
      << "promises end with their sequence";
}

TEST(BlockPool, BytesHeldOnlyBySomeAreWhatTheirEndFrees) {
  const Pool pool(Spec());
  const std::vector<int> tags = Range(0, 3 * kBlock);
  auto first = pool.NewSequence(), second = pool.NewSequence();
  ASSERT_TRUE(Append(*first, tags).ok());
  first->Publish(Ids(tags));
  ASSERT_EQ(second->AppendShared(Ids(tags)), 3);
  ASSERT_TRUE(Append(*second, {900}).ok());
  const BlockTable* const one[] = {second->table()};
  const BlockTable* const both[] = {first->table(), second->table()};
  EXPECT_EQ(pool.blocks->BytesHeldOnlyBy(both), pool.held());
  const std::uint64_t freed = pool.blocks->BytesHeldOnlyBy(one);
  const std::uint64_t before = pool.held();
  second.reset();
  EXPECT_EQ(pool.held(), before - freed);
  EXPECT_GT(freed, 0u);
}

TEST(BlockPool, ASaveKeepsItsBlocksAndThePoolAlive) {
  BlockImage image;
  {
    const Pool pool(Spec());
    auto seq = pool.NewSequence();
    ASSERT_TRUE(Append(*seq, Range(0, kBlock)).ok());
    image = seq->Image(0, kBlock);
    seq->Rewind(0);
    EXPECT_GT(pool.held(), 0u);
    pool.ExpectSound();
  }
  const KvLayout layout(Spec(), kBlock);
  EXPECT_EQ(At(layout.TileAt(image.payload.data(), 1, 1, kBlock).keys, 3),
            KeyOf(3, 1, 1, 0));
}

// Random lives of many sequences, compared with lists of tags.
class Lives {
 public:
  Lives(const KvSpec& spec, const KvRetention& keeps, unsigned seed)
      : pool_(spec, keeps, BytesOfBlocks(spec, 40)), rng_(seed) {}

  void Run(int n_steps) {
    for (int step = 0; step < n_steps; ++step) {
      SCOPED_TRACE(step);
      Step();
      pool_.ExpectSound();
      ExpectAllHold();
      if (testing::Test::HasFatalFailure()) return;
    }
    lives_.clear();
    saves_.clear();
    EXPECT_EQ(pool_.held(), 0u);
    EXPECT_EQ(pool_.blocks->Usage().mapped_bytes, 0u);
  }

 private:
  struct Life {
    std::unique_ptr<KvSequence> seq;
    std::vector<int> tags;
    int script;
  };

  int Random(int n) {
    return static_cast<int>(rng_() % static_cast<unsigned>(n));
  }
  // Scripts begin alike, and part at different places.
  static int TagOf(int script, int position) {
    return position < 20 * script + 30 ? position : 1000 * script + position;
  }
  Life& Any() { return lives_[static_cast<std::size_t>(Random(size()))]; }
  int size() const { return static_cast<int>(lives_.size()); }

  void Step() {
    const int what = Random(11);
    if (lives_.empty() || (what == 0 && size() < 6)) return Begin();
    Life& life = Any();
    switch (what) {
      case 1:
      case 2:
      case 3:
        return Extend(life);
      case 4:
        return life.seq->Publish(Ids(life.tags));
      case 5:
        return Rewind(life);
      case 6:
        return Fork(life);
      case 7:
        return Exchange(life);
      case 8:
        return Save(life);
      case 9:
        (void)life.seq->Reserve(life.seq->n_tokens() + Random(60) - 20);
        return;
      case 10:
        if (Random(3) == 0) {
          life = std::move(lives_.back());
          lives_.pop_back();
        }
        return;
    }
  }

  void Begin() {
    Life life{pool_.NewSequence(), {}, Random(4)};
    std::vector<int> want;
    for (int i = 0; i < 150; ++i) want.push_back(TagOf(life.script, i));
    const int n = life.seq->AppendShared(Ids(want));
    want.resize(static_cast<std::size_t>(n * kBlock));
    life.tags = std::move(want);
    lives_.push_back(std::move(life));
  }

  void Extend(Life& life) {
    const int n = 1 + Random(40), at = life.seq->n_tokens();
    std::vector<int> tags;
    for (int i = 0; i < n; ++i) tags.push_back(TagOf(life.script, at + i));
    if (Append(*life.seq, tags).ok()) {
      life.tags.insert(life.tags.end(), tags.begin(), tags.end());
    }
  }

  void Rewind(Life& life) {
    const int n = life.seq->RewindableTo(Random(life.seq->n_tokens() + 1));
    life.seq->Rewind(n);
    life.tags.resize(static_cast<std::size_t>(n));
    if (Random(2) == 0) life.script = Random(4);
  }

  void Fork(Life& life) {
    if (size() >= 6) return;
    auto fork = life.seq->Fork();
    if (!fork.ok()) return;
    Life other{std::move(*fork), life.tags, life.script};
    lives_.push_back(std::move(other));
  }

  void Exchange(Life& life) {
    const auto ids = Ids(life.tags);
    if (ids.empty()) return;
    const int block = Random(static_cast<int>(ids.size()));
    if (!life.seq->HasImage(block, kBlock)) return;
    const auto stored = Stored(*life.seq, block);
    life.seq->Exchange(block, ids[static_cast<std::size_t>(block)], *stored,
                       stored);
    EXPECT_TRUE(life.seq->IsMapped(block));
  }

  // Something is on its way to the store for a while.
  void Save(const Life& life) {
    const int n_full = life.seq->n_tokens() / kBlock;
    if (saves_.size() > 3) saves_.erase(saves_.begin());
    if (n_full == 0) return;
    const int block = Random(n_full);
    if (!life.seq->HasImage(block, kBlock)) return;
    saves_.push_back(life.seq->Image(block, kBlock));
  }

  bool Sees(int layer, int n_tokens, int position) const {
    const auto& windows = pool_.retention.windows;
    const int window =
        windows.empty() ? 0 : windows[static_cast<std::size_t>(layer)];
    return window == 0 || position < pool_.retention.sink_tokens ||
           n_tokens - position < window;
  }

  void ExpectAllHold() {
    for (const Life& life : lives_) {
      const int n = life.seq->n_tokens();
      ASSERT_EQ(n, static_cast<int>(life.tags.size()));
      if (pool_.spec.quantised()) {
        ExpectSameBytes(life);
        continue;
      }
      for (int layer = 0; layer < pool_.spec.n_layers(); ++layer) {
        for (int t = 0; t < n; ++t) {
          if (!Sees(layer, n, t)) continue;
          ExpectHoldsToken(*life.seq, layer, t,
                           life.tags[static_cast<std::size_t>(t)]);
        }
      }
    }
  }

  // A block's bytes are functions of its id, whoever sealed it and when.
  void ExpectSameBytes(const Life& life) {
    const auto ids = Ids(life.tags);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (!life.seq->HasImage(static_cast<int>(i), kBlock)) continue;
      const BlockImage image = life.seq->Image(static_cast<int>(i), kBlock);
      const std::uint64_t sum = Checksum64(image.payload);
      EXPECT_EQ(sums_.try_emplace(ids[i], sum).first->second, sum);
    }
  }

  Pool pool_;
  std::mt19937 rng_;
  std::vector<Life> lives_;
  std::vector<BlockImage> saves_;
  std::map<Digest, std::uint64_t> sums_;
};

TEST(BlockPool, RandomLivesEqualPlainListsAndStaySound) {
  KvSpec int8 = Spec();
  int8.SetFormat(KvFormat::kInt8);
  const KvRetention all, windows{.windows = {32, 0, 20}, .sink_tokens = 3},
      forgets{.windows = {32, 40, 20}};
  unsigned seed = 0;
  for (const KvSpec& spec : {Spec(), int8}) {
    for (const KvRetention& keeps : {all, windows, forgets}) {
      SCOPED_TRACE(seed);
      Lives(spec, keeps, ++seed).Run(300);
    }
  }
}

// Layers of whole pages, so that a window really gives memory back.
TEST(BlockPool, WhatAWindowHasGivenBackIsFoundByNobody) {
  const KvSpec spec(UniformKv{
      .n_layers = 2, .n_heads = 1, .head_dim = 64, .block_tokens = kBlock});
  const Pool pool(spec, {.windows = {0, kBlock}});
  const auto tags = Range(0, 4 * kBlock);
  auto seq = pool.NewSequence();
  ASSERT_TRUE(Append(*seq, tags).ok());
  seq->Publish(Ids(tags));
  auto other = pool.NewSequence();
  ASSERT_EQ(other->AppendShared(Ids(tags)), 4);
  const std::uint64_t before = pool.held();
  ASSERT_TRUE(Append(*seq, {900}).ok());
  ExpectHolds(*other, tags);
  pool.ExpectSound();
  other.reset();
  ASSERT_TRUE(Append(*seq, {901}).ok());
  EXPECT_LT(pool.held(), before) << "but for the new block";
  EXPECT_EQ(pool.NewSequence()->AppendShared(Ids(tags)), 0);
  pool.ExpectSound();
}

TEST(BlockPool, ThreadsShareAndDropBlocksAllAtOnce) {
  const Pool pool(Spec());
  const auto live = [&](int mine) {
    std::mt19937 rng(static_cast<unsigned>(mine));
    for (int round = 0; round < 60; ++round) {
      auto tags = Range(0, kBlock * (1 + static_cast<int>(rng() % 6)));
      auto seq = pool.NewSequence();
      const auto n =
          static_cast<std::size_t>(seq->AppendShared(Ids(tags)) * kBlock);
      const std::vector<int> rest(tags.begin() + static_cast<long>(n),
                                  tags.end());
      if (!rest.empty()) {
        ASSERT_TRUE(Append(*seq, rest).ok());
      }
      seq->Publish(Ids(tags));
      ASSERT_TRUE(Append(*seq, {1000 + mine}).ok());
      tags.push_back(1000 + mine);
      ExpectHolds(*seq, tags);
      seq->Rewind(static_cast<int>(rng() % tags.size()));
      ASSERT_TRUE(Append(*seq, {2000 + mine}).ok());
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) threads.emplace_back(live, i);
  for (std::thread& thread : threads) thread.join();
  pool.ExpectSound();
  EXPECT_EQ(pool.held(), 0u);
}

}  // namespace
}  // namespace hearth
