// Sequences of one pool: what they have in common is in memory once, and
// whatever happens to one leaves the others as they are.
#include "cache/pool/block_pool.h"

#include <gtest/gtest.h>

#include <random>
#include <thread>
#include <vector>

#include "testing/pooled_sequences.h"

namespace hearth {
namespace {

using namespace pooled;  // NOLINT

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

// Whatever stops a step, the room that was promised for it is there for the
// next try.
TEST(BlockPool, AStepThatEndsInNothingLeavesThePromise) {
  KvSpec int8 = Spec();
  int8.SetFormat(KvFormat::kInt8);
  for (const KvSpec& spec : {Spec(), int8}) {
    SCOPED_TRACE(spec.quantised());
    // Of a quantised spec two tails in fp32, too: one before a step, one after.
    const int n_tails = spec.quantised() ? 2 : 0;
    const Pool pool(spec, {},
                    BytesOfBlocks(spec, 4) +
                        (n_tails == 0 ? 0 : BytesOfBlocks(Spec(), n_tails)));
    auto first = pool.NewSequence(), second = pool.NewSequence();
    ASSERT_TRUE(Append(*first, Range(0, 5)).ok());
    ASSERT_EQ(first->Reserve(3 * kBlock + 1), 0u);
    const auto others = [&] { return second->Reserve(4 * kBlock + 1); };
    const std::uint64_t missing = others();
    ASSERT_GT(missing, 0u);
    for (int i = 0; i < 2; ++i) {
      ASSERT_TRUE(first->Extend(3 * kBlock - 4).ok());
      first->Abandon();
      EXPECT_EQ(others(), missing) << "after a step that was abandoned";
      EXPECT_FALSE(first->Extend(9 * kBlock).ok());
      EXPECT_EQ(others(), missing) << "after a step that found no room";
    }
    ExpectHolds(*first, Range(0, 5));
    EXPECT_TRUE(Append(*first, Range(5, 3 * kBlock + 1)).ok());
    pool.ExpectSound();
  }
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
    image = *seq->Image(0, kBlock);
    seq->Rewind(0);
    EXPECT_GT(pool.held(), 0u);
    pool.ExpectSound();
  }
  const KvLayout layout(Spec(), kBlock);
  EXPECT_EQ(At(layout.TileAt(image.payload.data(), 1, 1, kBlock).keys, 3),
            KeyOf(3, 1, 1, 0));
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
