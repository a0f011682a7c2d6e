// Sessions of one engine that begin with the same tokens: their keys and values
// are in memory once, without a fork and without a store, and nobody can tell.
#include <gtest/gtest.h>

#include <random>

#include "engine/engine_core.h"
#include "engine/kv_setup.h"
#include "hearth/engine.h"
#include "model/cpu/cpu_ops.h"
#include "testing/model_paths.h"
#include "testing/reference_model.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

using Ids = std::vector<std::int32_t>;

// `n_common` ids, the same for all, then `n_own` of `whose`.
Ids PromptOf(int n_common, int n_own, unsigned whose) {
  Ids ids;
  std::mt19937 common(1), own(100 + whose);
  for (int i = 0; i < n_common; ++i) {
    ids.push_back(static_cast<std::int32_t>(common() % 500));
  }
  for (int i = 0; i < n_own; ++i) {
    ids.push_back(static_cast<std::int32_t>(own() % 500));
  }
  return ids;
}

void ExpectSound(Engine& engine) {
  const auto sound = EngineAccess::Core(engine).kv.pool()->CheckIntegrity();
  EXPECT_TRUE(sound.ok()) << sound.error().message;
}

TEST(SharedPrefix, FourThousandCommonTokensAreInMemoryOnce) {
  constexpr int kCommon = 4000, kBlocks = kCommon / kDefaultBlockTokens;
  const auto engine =
      *Engine::Open({.model_path = kStories260K, .context_tokens = 4200});
  const auto first = *engine->NewSession(), second = *engine->NewSession();
  ASSERT_TRUE(first->Sync(PromptOf(kCommon, 40, 1), nullptr).ok());
  const std::uint64_t once = engine->MemoryInUse().held_bytes;
  EXPECT_EQ(first->Usage().shared_bytes, 0u);

  const auto synced = second->Sync(PromptOf(kCommon, 40, 2), nullptr);
  ASSERT_TRUE(synced.ok()) << synced.error().message;
  EXPECT_EQ(synced->reused_tokens, kBlocks * kDefaultBlockTokens);
  EXPECT_EQ(synced->reuse_tier, "memory");
  const std::uint64_t block_bytes =
      KvLayout(EngineAccess::Core(*engine).kv.spec(), kDefaultBlockTokens)
          .block_bytes();
  // Each has two blocks of its own.
  EXPECT_EQ(engine->MemoryInUse().held_bytes, once + 2 * block_bytes);
  for (const Session* session : {first.get(), second.get()}) {
    const KvReport usage = session->Usage();
    EXPECT_EQ(usage.shared_bytes, kBlocks * block_bytes);
    EXPECT_EQ(usage.physical_bytes, (kBlocks + 2) * block_bytes);
  }
  ExpectSound(*engine);
}

TEST(SharedPrefix, AloneAndSharedGiveTheSameBits) {
  const GenerateOptions wish{
      .n_tokens_max = 20, .ignore_eos = true, .sampling = {.temperature = 0}};
  for (const KvStorage storage : {KvStorage::kFp32, KvStorage::kFp16,
                                  KvStorage::kInt8, KvStorage::kInt4}) {
    const EngineOptions options{
        .model_path = kStories260K, .kv_storage = storage, .block_tokens = 16};
    const Ids prompt = PromptOf(100, 21, 2);
    const auto lonely = *Engine::Open(options);
    const auto alone = *lonely->NewSession();
    ASSERT_TRUE(alone->Sync(prompt, nullptr).ok());
    const auto logits = alone->logits();
    const std::vector<float> want(logits.begin(), logits.end());
    const auto said = alone->Generate(wish, nullptr);
    ASSERT_TRUE(said.ok());

    const auto engine = *Engine::Open(options);
    auto first = *engine->NewSession();
    ASSERT_TRUE(first->Sync(PromptOf(100, 30, 1), nullptr).ok());
    const auto second = *engine->NewSession();
    EXPECT_EQ(second->Sync(prompt, nullptr)->reused_tokens, 96);
    EXPECT_TRUE(std::equal(want.begin(), want.end(), second->logits().begin(),
                           second->logits().end()));
    // Whoever computed the prefix goes on, or goes.
    ASSERT_TRUE(first->Generate(wish, nullptr).ok());
    first.reset();
    const auto again = second->Generate(wish, nullptr);
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(again->token_ids, said->token_ids);
    ExpectSound(*engine);
  }
}

TEST(SharedPrefix, BlocksInMemoryAndBlocksOfTheStoreJoin) {
  TempDir dir;
  const EngineOptions options{.model_path = kStories260K,
                              .block_tokens = 16,
                              .prompt_cache_dir = dir.path() + "/cache",
                              .cache_always = true};
  const Ids longer = PromptOf(100, 60, 1);
  {
    const auto engine = *Engine::Open(options);
    const auto session = *engine->NewSession();
    ASSERT_TRUE(session->Sync(longer, nullptr).ok());
    session->Persist();
    ASSERT_TRUE(engine->DrainSaves().ok());
  }
  const auto engine = *Engine::Open(options);
  const auto other = *engine->NewSession();
  ASSERT_TRUE(other->Sync(PromptOf(100, 60, 2), nullptr).ok());
  const std::uint64_t mapped = engine->MemoryInUse().mapped_bytes;
  EXPECT_GT(mapped, 0u) << "six blocks are stored";
  const auto session = *engine->NewSession();
  const auto synced = session->Sync(longer, nullptr);
  ASSERT_TRUE(synced.ok());
  EXPECT_EQ(synced->reuse_tier, "disk");
  EXPECT_GE(synced->reused_tokens, 144);
  EXPECT_EQ(session->Usage().shared_bytes, mapped) << "mapped once";
  ExpectSound(*engine);
}

// Whatever is promised above: the pool has room for all but one block of what
// the sequences of a step want.
TEST(SharedPrefix, AStepThatThePoolCannotHoldLeavesEverySequenceAsItWas) {
  const ReferenceModel reference(ReferenceShape{});
  const ModelConfig& config = reference.model.config;
  ThreadPool threads(1);
  Forward forward(reference.model, MakeCpuOps(reference.model, threads));
  const Ids ids(20, 3), more(30, 4);
  for (const KvFormat format : {KvFormat::kF32, KvFormat::kInt8}) {
    SCOPED_TRACE(NameOf(format));
    const KvSpec spec = SpecOf(config, format, format, 16);
    // Steps a, then both; gives a's last logits.
    const auto run = [&](BlockPool& pool, bool fits) {
      const auto a = MakeInPlaceSequence(pool.shared_from_this(), spec);
      const auto b = MakeInPlaceSequence(pool.shared_from_this(), spec);
      std::vector<float> logits(static_cast<std::size_t>(config.vocab_size));
      EXPECT_TRUE(forward.Step({.kv = a.get(), .tokens = ids}).ok());
      const std::uint64_t before = pool.Usage().held_bytes;
      const StepPart parts[] = {{.kv = a.get(), .tokens = more},
                                {.kv = b.get(), .tokens = more}};
      const auto both = forward.Step(parts);
      EXPECT_EQ(both.ok(), fits);
      const std::uint64_t after = pool.Usage().held_bytes;
      if (!fits) {
        EXPECT_EQ(both.error().code, Code::kResourceFull);
        EXPECT_EQ(a->n_tokens(), 20);
        EXPECT_EQ(b->n_tokens(), 0);
        EXPECT_EQ(after, before);
        EXPECT_TRUE(forward.Step(parts[0]).ok());
      }
      EXPECT_TRUE(pool.CheckIntegrity().ok());
      EXPECT_TRUE(forward
                      .Step({.kv = a.get(),
                             .tokens = std::span(ids).first(1),
                             .want = LogitRows::kLast,
                             .logits = logits.data()})
                      .ok());
      return std::pair(logits, after);
    };
    const auto free = *MakeKvPool(spec, {}, {.n_blocks = 8});
    const auto [want, bytes] = run(*free, true);
    const auto tight =
        *MakeKvPool(spec, {}, {.n_blocks = 8, .bytes_max = bytes - 1});
    EXPECT_EQ(run(*tight, false).first, want);
  }
}

}  // namespace
}  // namespace hearth
