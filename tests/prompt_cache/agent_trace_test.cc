// What agents do to a prompt cache: many turns with a restart between them, and
// prompts that take turns.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "hearth/engine.h"
#include "testing/launch.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

std::vector<std::int32_t> Ids(int n, int salt) {
  std::vector<std::int32_t> ids;
  for (int i = 0; i < n; ++i) {
    ids.push_back(3 + (i * 37 + i * i * 11 + salt * 101) % 500);
  }
  return ids;
}

// What this process has handed to the system to be written, in files and
// elsewhere; nothing where the system does not say.
std::optional<std::uint64_t> BytesWritten() {
  std::ifstream io("/proc/self/io");
  for (std::string name; io >> name;) {
    std::uint64_t bytes = 0;
    io >> bytes;
    if (name == "wchar:") return bytes;
  }
  return std::nullopt;
}

// R51: 50 turns of an agent, each as in a process of its own. What was computed
// is never computed again, and what was written is not written again: all bytes
// of blocks, manifests, notes and memos together. A token of this model has
// 1,280 bytes of keys and values, so headers weigh here; StorePieces.R51_...
// holds a model of real size to 1.1.
TEST(AgentTrace, R51_FiftyTurnsWithRestartsComputeAndWriteOnlyWhatIsNew) {
  TempDir dir;
  EngineOptions options = WithDir(dir.path() + "/s");
  options.context_tokens = 4096;
  constexpr int kTurns = 50, kAnswer = 4, kResult = 36;
  std::vector<std::int32_t> history;
  int n_computed = 0, n_new = 0;
  std::uint64_t kv_bytes = 0;
  const auto written_before = BytesWritten();
  for (int turn = 0; turn < kTurns; ++turn) {
    const auto engine = Engine::Open(options).value();
    const auto session = engine->NewSession().value();
    const auto result = Ids(kResult, turn);  // what a tool gave back
    history.insert(history.end(), result.begin(), result.end());
    n_new += kResult + kAnswer;
    const auto sync = session->Sync(history, nullptr);
    ASSERT_TRUE(sync.ok()) << sync.error().message;
    EXPECT_TRUE(sync->warnings.empty());
    n_computed += sync->prompt_tokens - sync->reused_tokens;
    const auto answer = session->Generate({.n_tokens_max = kAnswer,
                                           .ignore_eos = true,
                                           .sampling = {.temperature = 0}},
                                          nullptr);
    ASSERT_TRUE(answer.ok());
    n_computed += kAnswer - 1;
    history.insert(history.end(), answer->token_ids.begin(),
                   answer->token_ids.end());
    session->Persist();
    ASSERT_TRUE(engine->DrainSaves().ok());
    kv_bytes = session->Usage().logical_bytes;
  }
  EXPECT_LE(n_computed, n_new * 11 / 10);
  if (!written_before.has_value()) GTEST_SKIP() << "no /proc/self/io";
  const std::uint64_t written = *BytesWritten() - *written_before;
  EXPECT_LE(written, kv_bytes * 12 / 10);
  EXPECT_GE(written, kv_bytes) << "what was not written cannot be reused";
  std::printf(
      "%d tokens computed for %d new ones; %llu bytes written for %llu "
      "of KV\n",
      n_computed, n_new, static_cast<unsigned long long>(written),
      static_cast<unsigned long long>(kv_bytes));
}

// R70, R4: two prompts that take turns, a third way to go on, and back.
TEST(AgentTrace, PromptsThatAlternateMissInTheFirstRoundAlone) {
  TempDir dir;
  EngineOptions options = WithDir(dir.path() + "/s");
  const auto a = Ids(200, 1), b = Ids(180, 2);
  std::set<const void*> known;
  for (int round = 0; round < 3; ++round) {
    for (const auto* prompt : {&a, &b, &a}) {
      const auto engine = Engine::Open(options).value();
      const auto session = engine->NewSession().value();
      const auto sync = session->Sync(*prompt, nullptr);
      ASSERT_TRUE(sync.ok());
      ASSERT_TRUE(session->Generate({.n_tokens_max = 1}, nullptr).ok());
      ASSERT_TRUE(engine->DrainSaves().ok());
      const bool first_time = known.insert(prompt).second;
      EXPECT_EQ(sync->reused_tokens, first_time ? 0 : sync->prompt_tokens - 1)
          << "round " << round << ": " << sync->miss_reason;
    }
  }
}

// Memory: one budget for all sessions of an engine.
TEST(KvRamBudget, R88_IsHeldRefusedAndFreedByIdleSessions) {
  TempDir dir;
  EngineOptions options = WithDir(dir.path() + "/s");
  options.context_tokens = 4096;
  const auto plain = Engine::Open(options).value();
  const auto measure = plain->NewSession().value();
  ASSERT_TRUE(measure->Sync(Ids(300, 9), nullptr).ok());
  const std::uint64_t five_blocks = measure->Usage().physical_bytes;
  options.kv_ram_budget_bytes = five_blocks * 2;  // ten blocks

  const auto engine = Engine::Open(options).value();
  const auto held = [](const Session& session) {
    return session.Usage().physical_bytes - session.Usage().mapped_bytes;
  };
  const auto first = engine->NewSession().value();
  const auto too_much = first->Sync(Ids(700, 1), nullptr);
  ASSERT_FALSE(too_much.ok());
  EXPECT_EQ(too_much.error().code, Code::kResourceFull);
  EXPECT_NE(too_much.error().message.find("budget"), std::string::npos);
  EXPECT_EQ(held(*first), 0u) << "refused before anything was allocated";

  const GenerateOptions few{
      .n_tokens_max = 4, .ignore_eos = true, .sampling = {.temperature = 0}};
  ASSERT_TRUE(first->Sync(Ids(380, 1), nullptr).ok());
  const auto second = engine->NewSession().value();
  EXPECT_FALSE(second->Sync(Ids(380, 2), nullptr).ok()) << "first is in use";
  const auto said = first->Generate(few, nullptr);
  ASSERT_TRUE(said.ok());
  ASSERT_TRUE(second->Sync(Ids(380, 2), nullptr).ok()) << "first is idle now";
  EXPECT_LE(engine->MemoryInUse().held_bytes, options.kv_ram_budget_bytes);
  EXPECT_LE(held(*first), five_blocks / 5) << "its full blocks are mapped";
  ASSERT_TRUE(second->Generate(few, nullptr).ok());
  // It goes on from there: nothing is computed again.
  auto history = Ids(380, 1);
  history.insert(history.end(), said->token_ids.begin(), said->token_ids.end());
  const auto back = first->Sync(history, nullptr);
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(back->reuse_tier, "memory");
  EXPECT_GE(back->reused_tokens, 380);
}

}  // namespace
}  // namespace hearth
