// What each kind of layer keeps (convolutions, delta nets, Mamba-2, latent
// attention, layers that read others' keys), with every option that changes
// what is kept of a prompt: computed at once, in pieces, stored and read again,
// forked and gone back in, the logits are the same bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "hearth/engine.h"
#include "testing/family_fixture.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

struct KeptCase {
  const char* family;
  const char* options;
  KvStorage storage = KvStorage::kFp32;
  int window = 0;  // a streaming window with two sinks
};

void PrintTo(const KeptCase& c, std::ostream* out) {
  *out << c.family << c.options;
}

class KeptFamilies : public ::testing::TestWithParam<KeptCase> {
 protected:
  void SetUp() override {
    dir_ = DirectoryOf(GetParam().family);
    if (dir_.empty()) GTEST_SKIP() << "no such fixture here";
    cold_ = Open(512, /*cached=*/false);
    vocab_ = cold_->info().vocab_size;
  }
  std::unique_ptr<Engine> Open(int step, bool cached) const {
    EngineOptions options;
    options.model_path = dir_;
    options.n_threads = 1;
    options.prefill_step_tokens = step;
    options.block_tokens = 16;
    options.kv_storage = GetParam().storage;
    options.streaming_window = GetParam().window;
    options.streaming_sink = GetParam().window > 0 ? 2 : 0;
    options.cache_always = true;
    if (cached) options.prompt_cache_dir = store_.path() + "/s";
    auto engine = Engine::Open(options);
    EXPECT_TRUE(engine.ok()) << engine.error().message;
    return engine.ok() ? std::move(*engine) : nullptr;
  }
  // `n` tokens of one text, then `n_others` of another.
  std::vector<std::int32_t> Ids(int n, int n_others = 0) const {
    std::vector<std::int32_t> ids;
    for (int i = 0; i < n + n_others; ++i) {
      ids.push_back((i * i * 7 + i * 3 + (i < n ? 1 : n + 2)) % vocab_);
    }
    return ids;
  }
  static int Sync(Session& session, const std::vector<std::int32_t>& ids) {
    const auto report = session.Sync(ids, nullptr, {});
    EXPECT_TRUE(report.ok()) << report.error().message;
    return report.ok() ? report->reused_tokens : -1;
  }
  static std::vector<float> LogitsOf(const Session& session) {
    return {session.logits().begin(), session.logits().end()};
  }
  std::vector<float> Cold(const std::vector<std::int32_t>& ids) const {
    const auto session = *cold_->NewSession();
    EXPECT_EQ(Sync(*session, ids), 0);
    return LogitsOf(*session);
  }

  TempDir store_;
  std::string dir_;
  int vocab_ = 0;
  std::unique_ptr<Engine> cold_;
};

TEST_P(KeptFamilies, HoweverItIsArrivedAtTheBitsAreTheSame) {
  const auto ids = Ids(100);
  const std::vector<float> want = Cold(ids);
  {
    const auto pieces = Open(7, /*cached=*/false);
    const auto session = *pieces->NewSession();
    Sync(*session, ids);
    EXPECT_EQ(LogitsOf(*session), want) << "in pieces";
  }
  {
    const auto engine = Open(48, /*cached=*/true);
    for (const int n : {37, 64, 100}) {
      const auto session = *engine->NewSession();
      Sync(*session, Ids(n));
      session->Persist();
    }
    ASSERT_TRUE(engine->DrainSaves().ok());
  }
  const auto engine = Open(48, /*cached=*/true);
  const auto session = *engine->NewSession();
  EXPECT_EQ(Sync(*session, ids), 99);
  EXPECT_EQ(LogitsOf(*session), want) << "stored";
  for (const auto& other : {Ids(37, 20), Ids(50, 9), Ids(64, 40), Ids(99, 2)}) {
    const auto restored = *engine->NewSession();
    const int n_reused = Sync(*restored, other);
    // Quantised ones are shared at ends of blocks.
    if (GetParam().storage == KvStorage::kFp32) {
      EXPECT_GT(n_reused, 0);
    }
    EXPECT_EQ(LogitsOf(*restored), Cold(other)) << other.size();
  }
  const auto fork = std::move(*session->Fork());
  const auto parted = Ids(90, 15), longer = Ids(112);
  Sync(*fork, parted);
  EXPECT_EQ(LogitsOf(*fork), Cold(parted)) << "forked";
  Sync(*session, longer);
  EXPECT_EQ(LogitsOf(*session), Cold(longer)) << "what was forked from";
  for (const auto& back : {Ids(70, 3), Ids(40), Ids(100)}) {
    Sync(*session, back);
    EXPECT_EQ(LogitsOf(*session), Cold(back)) << "gone back " << back.size();
  }
}

std::vector<KeptCase> Cases() {
  std::vector<KeptCase> cases;
  for (const char* family :
       {"lfm2", "qwen3_5_long", "qwen3_next", "granitemoehybrid", "falcon_h1",
        "deepseek_v3", "gemma4_shared"}) {
    cases.push_back({family, ""});
    cases.push_back({family, "_int8", KvStorage::kInt8});
    cases.push_back({family, "_window", KvStorage::kFp32, 60});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(All, KeptFamilies, ::testing::ValuesIn(Cases()),
                         [](const auto& test) {
                           return std::string(test.param.family) +
                                  test.param.options;
                         });

}  // namespace
}  // namespace hearth
