// Thousands of turns on one session: new text, edits of old text, forks, cuts.
// Whatever a session went through, it continues as a fresh one would.
// HEARTH_SOAK_TURNS sets the number of turns of each kind.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <string>

#include "hearth/engine.h"
#include "hearth_test_paths.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

const std::string kRecall = std::string(HEARTH_TEST_DATA "/models/recall");

struct Kind {
  const char* name;
  KvStorage storage;
  int sink, window;
  bool store;
};

int Turns() {
  const char* turns = std::getenv("HEARTH_SOAK_TURNS");
  return turns == nullptr ? 30 : std::atoi(turns);
}

class KvSoak : public ::testing::TestWithParam<Kind> {};

TEST_P(KvSoak, ASessionContinuesAsAFreshOneWould) {
  const Kind kind = GetParam();
  TempDir dir;
  EngineOptions options{.model_path = kRecall, .n_threads = 1};
  options.kv_storage = kind.storage;
  options.streaming_sink = kind.sink;
  options.streaming_window = kind.window;
  options.block_tokens = 32;
  EngineOptions fresh_options = options;
  if (kind.store) options.prompt_cache_dir = dir.path() + "/store";
  auto engine = Engine::Open(options);
  auto fresh_engine = Engine::Open(fresh_options);
  ASSERT_TRUE(engine.ok() && fresh_engine.ok());
  auto session = std::move(*(*engine)->NewSession());
  std::mt19937 rng(static_cast<unsigned>(kind.storage) + 10);
  const auto random = [&](int low, int high) {
    return low +
           static_cast<int>(rng() % static_cast<unsigned>(high - low + 1));
  };
  GenerateOptions generate;
  generate.sampling.temperature = 0;
  std::vector<std::int32_t> tokens;
  for (int turn = 0; turn < Turns(); ++turn) {
    switch (random(0, 5)) {
      case 0:  // an edit: what follows it is dropped
        if (!tokens.empty()) {
          tokens.resize(static_cast<std::size_t>(
              random(1, static_cast<int>(tokens.size()))));
          tokens.back() = random('a', 'z');
        }
        break;
      case 1:  // a cut by the verb
        if (session->tokens().size() > 1) {
          const int n = random(1, static_cast<int>(session->tokens().size()));
          ASSERT_TRUE(session->Rewind(n).ok());
          tokens = session->tokens();
        }
        break;
      case 2: {  // a fork goes on, the original is dropped, or the reverse
        auto fork = std::move(*session->Fork());
        if (random(0, 1) == 1) session.swap(fork);
        break;
      }
      default:
        break;
    }
    if (tokens.size() > 400) tokens.resize(50);
    for (int n = random(1, 40); n > 0; --n) tokens.push_back(random('a', 'z'));
    const auto synced = session->Sync(tokens, nullptr);
    ASSERT_TRUE(synced.ok()) << synced.error().message;
    generate.n_tokens_max = random(1, 20);
    const auto report = session->Generate(generate, nullptr);
    ASSERT_TRUE(report.ok()) << report.error().message;
    if (turn % 5 == 0) {
      auto fresh = std::move(*(*fresh_engine)->NewSession());
      ASSERT_TRUE(fresh->Sync(tokens, nullptr).ok());
      const auto expected = fresh->Generate(generate, nullptr);
      ASSERT_TRUE(expected.ok());
      ASSERT_EQ(report->token_ids, expected->token_ids) << "turn " << turn;
    }
    tokens = session->tokens();
    if (kind.store && random(0, 2) == 0) session->Persist();
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, KvSoak,
    ::testing::Values(Kind{"fp16", KvStorage::kFp16, 0, 0, true},
                      Kind{"int8", KvStorage::kInt8, 0, 0, true},
                      Kind{"int4", KvStorage::kInt4, 0, 0, false},
                      Kind{"fp32_window", KvStorage::kFp32, 3, 70, true},
                      Kind{"int8_window", KvStorage::kInt8, 3, 70, true},
                      Kind{"int4_window", KvStorage::kInt4, 5, 64, false}),
    [](const auto& param_info) { return param_info.param.name; });

}  // namespace
}  // namespace hearth
