// Fifty turns of an agent with models that carry states: what is computed, what
// is written, and what a kill costs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "base/file.h"
#include "hearth/engine.h"
#include "testing/family_fixture.h"
#include "testing/temp_dir.h"
#include "testing/tiny_model.h"

namespace hearth {
namespace {

namespace fs = std::filesystem;

// Tokens of a recorded session of a coding agent, in 16: its first prompt, and
// of each of 50 turns what the model said and what a tool or its user did
// (kv-cache-tester's traces, trace_0004; Apache-2.0). Here a quarter of them.
constexpr int kFirstPrompt = 5272;
constexpr int kSaid[] = {10, 17, 8,  17, 13, 8,  10, 10, 19, 16, 6,  10, 10,
                         9,  16, 6,  11, 10, 9,  7,  9,  22, 6,  11, 3,  9,
                         9,  17, 12, 10, 26, 8,  16, 11, 11, 11, 10, 19, 9,
                         11, 9,  16, 9,  10, 17, 6,  10, 5,  9,  10};
constexpr int kHeard[] = {19, 8,  18, 8,  9, 1,  73, 9,   9,   4,  85, 114, 16,
                          8,  4,  22, 17, 6, 1,  14, 108, 4,   52, 1,  2,   17,
                          37, 2,  9,  73, 1, 29, 8,  1,   297, 1,  37, 8,   73,
                          1,  16, 1,  9,  7, 4,  47, 8,   3,   23, 9};
constexpr int Here(int n) { return std::max(1, n / 4); }
static_assert(std::size(kSaid) == 50 && std::size(kHeard) == 50);

class AgentTraceStates : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string from = DirectoryOf(GetParam());
    if (from.empty()) GTEST_SKIP() << "no such fixture here";
    // Rotation or nothing says where a token is, so that any context will do.
    model_ = dir_.path() + "/model";
    fs::copy(from, model_);
    std::string config = *ReadTextFile(model_ + "/config.json");
    const std::string key = "\"max_position_embeddings\":";
    const std::size_t at = config.find(key);
    ASSERT_NE(at, std::string::npos);
    config.insert(at + key.size(), " 8192, \"was\":");
    fs::remove(model_ + "/config.json");
    WriteTextFile(model_ + "/config.json", config);
    const auto engine = Open(false);
    vocab_ = engine->info().vocab_size;
    history_ = Heard(Here(kFirstPrompt));
  }
  std::unique_ptr<Engine> Open(bool cached = true) const {
    EngineOptions options{.model_path = model_, .n_threads = 1};
    if (cached) options.prompt_cache_dir = dir_.path() + "/s";
    auto engine = Engine::Open(options);
    EXPECT_TRUE(engine.ok()) << engine.error().message;
    return engine.ok() ? std::move(*engine) : nullptr;
  }
  std::vector<std::int32_t> Heard(int n) const {
    std::vector<std::int32_t> ids;
    const int salt = static_cast<int>(history_.size());
    for (int i = 0; i < n; ++i) {
      ids.push_back((2 + i * 37 + i * i * 11 + salt * 101) % vocab_);
    }
    return ids;
  }
  // Tokens of the history that are computed for it.
  int Sync(Session& session) const {
    const auto report = session.Sync(history_, nullptr);
    EXPECT_TRUE(report.ok()) << report.error().message;
    return report.ok() ? report->prompt_tokens - report->reused_tokens : -1;
  }
  // One turn; gives the tokens that were computed.
  int Turn(Session& session, std::size_t i) {
    int n = Sync(session);
    const auto answer = session.Generate({.n_tokens_max = Here(kSaid[i]),
                                          .ignore_eos = true,
                                          .sampling = {.temperature = 0}},
                                         nullptr);
    EXPECT_TRUE(answer.ok()) << answer.error().message;
    if (!answer.ok()) return -1;
    n += Here(kSaid[i]) - 1;
    history_.insert(history_.end(), answer->token_ids.begin(),
                    answer->token_ids.end());
    const auto heard = Heard(Here(kHeard[i]));
    history_.insert(history_.end(), heard.begin(), heard.end());
    return n;
  }
  // Number and bytes of what lies in a folder of the store.
  std::pair<int, std::uint64_t> Stored(const std::string& folder) const {
    std::pair<int, std::uint64_t> sum{0, 0};
    const std::string root = dir_.path() + "/s/" + folder;
    if (!fs::exists(root)) return sum;
    for (const auto& entry : fs::recursive_directory_iterator(root)) {
      if (!entry.is_regular_file()) continue;
      ++sum.first;
      sum.second += entry.file_size();
    }
    return sum;
  }

  TempDir dir_;
  std::string model_;
  int vocab_ = 0;
  std::vector<std::int32_t> history_;
};

TEST_P(AgentTraceStates, WithoutAPauseOnlyWhatIsNewIsComputedAndFewAreKept) {
  const auto engine = Open();
  auto session = *engine->NewSession();
  int n_computed = 0;
  for (std::size_t i = 0; i < 50; ++i) n_computed += Turn(*session, i);
  const auto n_new = static_cast<int>(session->tokens().size());
  EXPECT_LE(n_computed, n_new * 11 / 10);
  ASSERT_TRUE(engine->DrainSaves().ok());
  const auto [n_states, bytes] = Stored("states");
  // One each 1,024 tokens, each prompt's where no server is, and what they are
  // thinned out to: never one a turn.
  EXPECT_GE(n_states, 2);
  EXPECT_LE(n_states, 16);
  std::printf("%d tokens computed for %d new ones; %d states of %llu bytes\n",
              n_computed, n_new, n_states,
              static_cast<unsigned long long>(bytes));
  // Another process while this one has not rested is one after a kill.
  history_ = session->tokens();
  {
    const auto after = Open();
    const int n_again = Sync(**after->NewSession());
    EXPECT_LE(n_again, 1024);
    std::printf("%d after a kill\n", n_again);
  }
  session->Persist();
  ASSERT_TRUE(engine->DrainSaves().ok());
  history_.push_back(1);
  const auto rested = Open();
  EXPECT_LE(Sync(**rested->NewSession()), 1);
}

class AgentTraceRestarts : public AgentTraceStates {};

TEST_P(AgentTraceRestarts, EachInItsProcessFiftyTurnsComputeOnlyWhatIsNew) {
  int n_computed = 0, n_held = 0;
  for (std::size_t i = 0; i < 50; ++i) {
    const auto engine = Open();
    const auto session = *engine->NewSession();
    n_computed += Turn(*session, i);
    session->Persist();
    ASSERT_TRUE(engine->DrainSaves().ok());
    n_held = static_cast<int>(session->tokens().size());
  }
  EXPECT_LE(n_computed, n_held * 11 / 10);
  // At rest the prompt's and the answer's, and those on the way.
  const auto [n_states, state_bytes] = Stored("states");
  EXPECT_LE(n_states, 3 * 50);
  std::printf("%d tokens computed for %d new ones; %d states of %llu bytes\n",
              n_computed, n_held, n_states,
              static_cast<unsigned long long>(state_bytes));
}

std::string NameOf(const ::testing::TestParamInfo<const char*>& test) {
  return test.param;
}
INSTANTIATE_TEST_SUITE_P(All, AgentTraceStates,
                         ::testing::Values("lfm2", "qwen3_5_long"), NameOf);
INSTANTIATE_TEST_SUITE_P(All, AgentTraceRestarts, ::testing::Values("lfm2"),
                         NameOf);

}  // namespace
}  // namespace hearth
