// The prompt cache of models with recurrent states: what is begun from a stored
// or shared position gives the bits that computing all of it gives.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "hearth/engine.h"
#include "hearth_test_paths.h"
#include "testing/family_fixture.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

namespace fs = std::filesystem;

class HybridCache : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    dir_ = DirectoryOf(GetParam());
    if (dir_.empty()) GTEST_SKIP() << "no such fixture here";
    ids_ = ReadReference(dir_).ids;
    ASSERT_GE(ids_.size(), 160u);
    without_ = Open(/*cached=*/false);
  }
  std::unique_ptr<Engine> Open(bool cached = true,
                               const std::string& draft = "") const {
    EngineOptions options;
    options.model_path = dir_;
    options.n_threads = 1;
    options.prefill_step_tokens = 48;
    options.block_tokens = 16;
    options.kv_storage = storage_;
    options.draft = draft;
    if (cached) options.prompt_cache_dir = store_.path() + "/s";
    options.cache_always = true;
    auto engine = Engine::Open(options);
    EXPECT_TRUE(engine.ok()) << engine.error().message;
    return engine.ok() ? std::move(*engine) : nullptr;
  }
  std::vector<std::int32_t> First(std::size_t n) const {
    return {ids_.begin(), ids_.begin() + static_cast<std::ptrdiff_t>(n)};
  }
  // `n` tokens of the reference, then others.
  std::vector<std::int32_t> Parting(std::size_t n, std::size_t n_others) const {
    auto ids = First(n);
    for (std::size_t i = 0; i < n_others; ++i) {
      ids.push_back(static_cast<std::int32_t>((i * 7 + n) % 300 + 4));
    }
    return ids;
  }
  static SyncReport Sync(Session& session, const std::vector<std::int32_t>& ids,
                         const std::vector<int>& marks = {}) {
    auto report = session.Sync(ids, nullptr, marks);
    EXPECT_TRUE(report.ok()) << report.error().message;
    return report.ok() ? std::move(*report) : SyncReport{};
  }
  static std::vector<float> LogitsOf(const Session& session) {
    return {session.logits().begin(), session.logits().end()};
  }
  // What computing all of it gives.
  std::vector<float> Cold(const std::vector<std::int32_t>& ids) const {
    const auto session = *without_->NewSession();
    EXPECT_EQ(Sync(*session, ids).reused_tokens, 0);
    return LogitsOf(*session);
  }
  static std::vector<std::int32_t> Answer(Session& session, int n) {
    auto report = session.Generate(
        {.n_tokens_max = n, .ignore_eos = true, .sampling = {.temperature = 0}},
        nullptr);
    EXPECT_TRUE(report.ok()) << report.error().message;
    return report.ok() ? report->token_ids : std::vector<std::int32_t>{};
  }
  std::vector<fs::path> StateFiles() const {
    std::vector<fs::path> files;
    const std::string root = store_.path() + "/s/states";
    if (!fs::exists(root)) return files;
    for (const auto& entry : fs::recursive_directory_iterator(root)) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
    return files;
  }

  TempDir store_;
  std::string dir_;
  KvStorage storage_ = KvStorage::kFp32;
  std::vector<std::int32_t> ids_;
  std::unique_ptr<Engine> without_;
};

TEST_P(HybridCache, TheSamePromptAfterARestartComputesItsLastTokenAlone) {
  const auto ids = First(100);
  std::vector<std::int32_t> answer;
  {
    const auto engine = Open();
    const auto session = *engine->NewSession();
    EXPECT_EQ(Sync(*session, ids).reused_tokens, 0);
    answer = Answer(*session, 10);
    // Killed here: nothing but the prompt was handed over.
    ASSERT_TRUE(engine->DrainSaves().ok());
  }
  const auto engine = Open();
  const auto session = *engine->NewSession();
  const SyncReport report = Sync(*session, ids);
  EXPECT_EQ(report.reused_tokens, 99);
  EXPECT_EQ(report.reuse_tier, "disk");
  EXPECT_EQ(report.miss_reason, "");
  EXPECT_EQ(LogitsOf(*session), Cold(ids));
  EXPECT_EQ(Answer(*session, 10), answer);
}

TEST_P(HybridCache, AConversationGoesOnFromItsAnswer) {
  std::vector<std::int32_t> all;
  {
    const auto engine = Open();
    const auto session = *engine->NewSession();
    Sync(*session, First(70));
    Answer(*session, 20);
    session->Persist();
    all = session->tokens();
    ASSERT_TRUE(engine->DrainSaves().ok());
  }
  const auto n_held = static_cast<int>(all.size());
  for (int i = 0; i < 30; ++i) all.push_back(i * 5 + 2);
  const auto engine = Open();
  const auto session = *engine->NewSession();
  EXPECT_EQ(Sync(*session, all).reused_tokens, n_held);
  EXPECT_EQ(LogitsOf(*session), Cold(all));
}

TEST_P(HybridCache, WhereAnAnswerIsRewrittenTheMessageBeforeIsTheBeginning) {
  {
    const auto engine = Open();
    const auto session = *engine->NewSession();
    Sync(*session, First(100), {40, 90});
    Answer(*session, 20);
    session->Persist();
    ASSERT_TRUE(engine->DrainSaves().ok());
  }
  const auto engine = Open();
  const auto session = *engine->NewSession();
  const auto next = Parting(93, 40);
  EXPECT_EQ(Sync(*session, next).reused_tokens, 90);
  EXPECT_EQ(LogitsOf(*session), Cold(next));
}

TEST_P(HybridCache, FromAnyPositionTheBitsAreTheSame) {
  {
    const auto engine = Open();
    for (const std::size_t n : {21, 48, 77, 130}) {
      const auto session = *engine->NewSession();
      Sync(*session, First(n));
      session->Persist();
    }
    ASSERT_TRUE(engine->DrainSaves().ok());
  }
  const auto engine = Open();
  int n_restored = 0;
  for (const std::size_t n : {22, 47, 60, 77, 79, 128, 131, 150}) {
    const auto ids = Parting(n, n % 3 * 20);
    const auto session = *engine->NewSession();
    const SyncReport report = Sync(*session, ids);
    n_restored += report.reused_tokens > 0 ? 1 : 0;
    EXPECT_EQ(LogitsOf(*session), Cold(ids)) << n;
  }
  EXPECT_EQ(n_restored, 8);
}

TEST_P(HybridCache, SessionsThatBeginAlikeHoldOneState) {
  const auto engine = Open(/*cached=*/false);
  const auto grown = [&](const std::vector<std::int32_t>& ids, Session& session,
                         int n_reused) {
    const std::uint64_t before = engine->MemoryInUse().state_bytes;
    const SyncReport report = Sync(session, ids, {70});
    EXPECT_EQ(report.reused_tokens, n_reused);
    EXPECT_EQ(report.reuse_tier, n_reused > 0 ? "memory" : "none");
    EXPECT_EQ(LogitsOf(session), Cold(ids));
    return engine->MemoryInUse().state_bytes - before;
  };
  const auto first = *engine->NewSession();
  const auto second = *engine->NewSession();
  const auto third = *engine->NewSession();
  EXPECT_GT(grown(Parting(70, 50), *first, 0), 0u);
  auto alike = Parting(70, 45);
  alike[70] += 1;
  const std::uint64_t common = grown(alike, *second, 70);
  auto other = Parting(70, 45);
  other[3] += 1;
  const std::uint64_t own = grown(other, *third, 0);
  EXPECT_LT(common, own);
  EXPECT_GE(second->Usage().kept_states, 2);
}

TEST_P(HybridCache, ADamagedStateIsComputedAgain) {
  const auto ids = First(100);
  {
    const auto engine = Open();
    const auto session = *engine->NewSession();
    Sync(*session, ids);
    session->Persist();
    ASSERT_TRUE(engine->DrainSaves().ok());
  }
  for (const fs::path& file : StateFiles()) {
    std::fstream out(file, std::ios::binary | std::ios::in | std::ios::out);
    out.seekp(5000);
    out.put('\x55');
  }
  const auto engine = Open();
  const auto session = *engine->NewSession();
  const SyncReport report = Sync(*session, ids);
  EXPECT_EQ(report.reused_tokens, 0);
  EXPECT_FALSE(report.warnings.empty());
  EXPECT_NE(report.miss_reason.find("no states"), std::string::npos);
  EXPECT_EQ(LogitsOf(*session), Cold(ids));
  // What took its place is found again.
  session->Persist();
  ASSERT_TRUE(engine->DrainSaves().ok());
  const auto again = Open();
  EXPECT_EQ(Sync(**again->NewSession(), ids).reused_tokens, 99);
}

TEST_P(HybridCache, ForkedAndGuessedWithACacheTheTextIsTheSame) {
  const auto ids = First(120);
  const auto cold = *without_->NewSession();
  Sync(*cold, ids);
  const auto want = Answer(*cold, 40);
  for (int round = 0; round < 2; ++round) {
    const auto engine = Open(true, "prompt-lookup");
    const auto session = *engine->NewSession();
    EXPECT_EQ(Sync(*session, ids).reused_tokens, round == 0 ? 0 : 119);
    const auto fork = std::move(*session->Fork());
    EXPECT_EQ(Answer(*session, 40), want);
    EXPECT_EQ(Answer(*fork, 40), want);
    session->Persist();
    ASSERT_TRUE(engine->DrainSaves().ok());
  }
}

TEST_P(HybridCache, RestoredSessionsInOneStepAreAsAlone) {
  {
    const auto engine = Open();
    const auto session = *engine->NewSession();
    Sync(*session, First(90));
    session->Persist();
    ASSERT_TRUE(engine->DrainSaves().ok());
  }
  const auto engine = Open();
  const auto a = *engine->NewSession();
  const auto b = *engine->NewSession();
  const auto ids_a = First(100), ids_b = Parting(60, 50);
  for (const auto& [session, ids] :
       {std::pair{a.get(), &ids_a}, {b.get(), &ids_b}}) {
    const auto report = session->Attach(*ids, engine->Match(*ids));
    ASSERT_TRUE(report.ok()) << report.error().message;
  }
  EXPECT_EQ(a->n_tokens(), 90);
  while (a->n_tokens() < 100 || b->n_tokens() < 110) {
    std::vector<SessionStep> steps;
    for (const auto& [session, ids] :
         {std::pair{a.get(), &ids_a}, {b.get(), &ids_b}}) {
      const auto at = static_cast<std::size_t>(session->n_tokens());
      if (at == ids->size()) continue;
      const auto end = static_cast<std::size_t>(session->NextStop());
      ASSERT_GT(end, at);
      const std::size_t n = std::min<std::size_t>(end - at, 16);
      steps.push_back(
          {session, std::span(*ids).subspan(at, n),
           at + n == ids->size() ? StepLogits::kLast : StepLogits::kNone});
    }
    ASSERT_TRUE(engine->Step(steps).ok());
  }
  EXPECT_EQ(LogitsOf(*a), Cold(ids_a));
  EXPECT_EQ(LogitsOf(*b), Cold(ids_b));
}

TEST_P(HybridCache, QuantisedKeysAndValuesTooAreGoneOnWith) {
  storage_ = KvStorage::kInt8;
  without_ = Open(/*cached=*/false);
  {
    const auto engine = Open();
    const auto session = *engine->NewSession();
    Sync(*session, First(100), {50});
    session->Persist();
    ASSERT_TRUE(engine->DrainSaves().ok());
  }
  for (const std::size_t n : {100, 130}) {
    const auto engine = Open();
    const auto session = *engine->NewSession();
    const auto ids = First(n);
    EXPECT_GT(Sync(*session, ids).reused_tokens, 0);
    EXPECT_EQ(LogitsOf(*session), Cold(ids));
  }
}

INSTANTIATE_TEST_SUITE_P(All, HybridCache,
                         ::testing::Values("lfm2", "qwen3_5_long"),
                         [](const auto& test) {
                           return std::string(test.param);
                         });

}  // namespace
}  // namespace hearth
