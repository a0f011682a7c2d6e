// What sequences keep of states: found by what stands before, counted by the
// pool, given up when memory is wanted.
#include "cache/states/state_index.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "cache/block_chain.h"
#include "cache/kv_layout.h"
#include "cache/kv_sequence.h"
#include "cache/states/sequence_states.h"

namespace hearth {
namespace {

constexpr int kStep = 16;

KvSpec Spec() {
  KvSpec spec(UniformKv{
      .n_layers = 1, .n_heads = 1, .head_dim = 4, .block_tokens = kStep});
  spec.states = {{StateRule::kLastInputs, {2, 512}}};  // 4 KiB
  return spec;
}

std::vector<std::int32_t> Tokens(int n) {
  std::vector<std::int32_t> tokens;
  for (int i = 0; i < n; ++i) tokens.push_back(i * 3);
  return tokens;
}

struct Prompt {
  explicit Prompt(std::vector<std::int32_t> of) : tokens(std::move(of)) {
    AddFullBlockIds(root, tokens, kStep, ids);
  }
  Digest IdAt(int n) const {
    const auto full = static_cast<std::size_t>(n / kStep);
    const Digest& parent = full == 0 ? root : ids[full - 1];
    return n % kStep == 0
               ? parent
               : ChildId(parent, std::span(tokens).subspan(
                                     full * kStep,
                                     static_cast<std::size_t>(n % kStep)));
  }
  StateCheckpointPtr Find(StateIndex& index, int n_max) const {
    return index.Longest(root, tokens, ids, kStep, n_max);
  }
  Digest root = Sha256().Field("root").Finish();
  std::vector<std::int32_t> tokens;
  std::vector<Digest> ids;
};

StateCheckpointPtr At(int n) {
  return std::make_shared<StateCheckpoint>(
      StateCheckpoint{.n_tokens = n, .slab = nullptr, .tail = {}});
}

TEST(StateIndex, TheLongestBeginningIsFound) {
  StateIndex index;
  const Prompt prompt(Tokens(100));
  const auto a = At(7), b = At(48), c = At(90);
  for (const auto& one : {a, b, c}) {
    index.Publish(prompt.IdAt(one->n_tokens), one);
  }
  EXPECT_EQ(prompt.Find(index, 100), c);
  EXPECT_EQ(prompt.Find(index, 89), b);
  EXPECT_EQ(prompt.Find(index, 47), a);
  EXPECT_EQ(prompt.Find(index, 6), nullptr);
  auto other = Tokens(100);
  other[60] = 1;
  EXPECT_EQ(Prompt(other).Find(index, 100), b);
  EXPECT_EQ(Prompt(Tokens(20)).Find(index, 100), a);
}

TEST(StateIndex, ItHoldsNothing) {
  StateIndex index;
  const Prompt prompt(Tokens(40));
  auto kept = At(20);
  index.Publish(prompt.IdAt(20), kept);
  kept.reset();
  EXPECT_EQ(prompt.Find(index, 40), nullptr);
  const auto again = At(20);
  index.Publish(prompt.IdAt(20), again);
  EXPECT_EQ(prompt.Find(index, 40), again);
  for (int i = 1; i < 300; ++i)
    index.Publish(prompt.IdAt(1 + i % 39), At(1 + i % 39));
  EXPECT_EQ(prompt.Find(index, 20), again);
}

// A step of n tokens that writes nothing but the states.
void Step(KvSequence& kv, int n) {
  ASSERT_TRUE(kv.Extend(n).ok());
  const std::vector<float> rows(static_cast<std::size_t>(n) * 4, 1.0f);
  kv.BeginLayer(0);
  kv.WriteHead(0, 0, rows.data(), rows.data(), 4);
  float* to = kv.states()->Write(0);
  std::fill_n(to, 1024, static_cast<float>(kv.n_tokens() + n));
  if (float* journal = kv.states()->Journal(0)) {
    std::fill_n(journal, static_cast<std::size_t>(n) * 512, 0.0f);
  }
  kv.Commit();
}

TEST(StateMemory, ThePoolCountsStatesAndTheOldestKeptGivesWay) {
  const KvSpec spec = Spec();
  const std::uint64_t slab = StateLayout(spec.states).bytes();
  const std::uint64_t block = KvLayout(spec, kStep).block_bytes();
  const auto pool = *MakeKvPool(
      spec, {}, {.n_blocks = 64, .bytes_max = 6 * slab + 64 * 4096 + block});
  {
    const auto kv = MakeInPlaceSequence(pool, spec);
    for (int i = 0; i < 12; ++i) {
      Step(*kv, 40);
      kv->KeepState();
      EXPECT_LE(pool->Usage().held_bytes, pool->options().bytes_max);
    }
    EXPECT_GT(pool->Usage().state_bytes, 0u);
    EXPECT_GE(kv->KeptStates().size(), 2u);
    EXPECT_EQ(kv->KeptStates().back()->n_tokens, 480);
    EXPECT_TRUE(pool->CheckIntegrity().ok());
  }
  EXPECT_EQ(pool->Usage().state_bytes, 0u);
}

TEST(StateMemory, AForkAndARestoredSequenceHoldItInCommon) {
  const KvSpec spec = Spec();
  const std::uint64_t slab = StateLayout(spec.states).bytes();
  const auto pool = *MakeKvPool(spec, {}, {.n_blocks = 64});
  const auto kv = MakeInPlaceSequence(pool, spec);
  Step(*kv, 37);
  const StateCheckpointPtr here = kv->KeepState();
  ASSERT_NE(here, nullptr);
  EXPECT_EQ(here->tail.payload.size(),
            KvLayout(spec, 37 % kStep).block_bytes());
  const std::uint64_t before = pool->Usage().state_bytes;
  const auto fork = *kv->Fork();
  const Prompt prompt(Tokens(37));
  kv->Publish(prompt.ids);
  const auto other = MakeInPlaceSequence(pool, spec);
  ASSERT_EQ(other->AppendShared(prompt.ids), 2);
  ASSERT_TRUE(
      other->AppendStored(here->tail.payload, 5, here->tail.owner, false).ok());
  other->RestoreState(here);
  EXPECT_EQ(pool->Usage().state_bytes, before);
  EXPECT_EQ(other->n_tokens(), 37);
  // Both go their own way; the kept position stays.
  Step(*other, 40);
  Step(*kv, 40);
  EXPECT_EQ(pool->Usage().state_bytes, before + slab)
      << "the first one writes over what it began with";
  EXPECT_EQ(other->RewindableTo(70), 37);
  other->Rewind(37);
  ASSERT_TRUE(other->Extend(1).ok());
  EXPECT_EQ(other->states()->Read(0)[0], 37.0f);
  other->Abandon();
}

}  // namespace
}  // namespace hearth
