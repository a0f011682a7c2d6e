// What a session reuses against what a search through memory, all files of the
// store and a shared server finds: whole blocks, whichever of them has each,
// then the longest beginning of the block behind them.
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "cache/block_chain.h"
#include "hearth/engine.h"
#include "store/remote/redis_server_testing.h"
#include "store/remote/remote_tier.h"
#include "store/tests/all_images.h"
#include "testing/launch.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

namespace fs = std::filesystem;
using Tokens = std::vector<std::int32_t>;

constexpr int kBlock = 16;

class LongestMatch : public testing::Test {
 protected:
  LongestMatch() {
    options_ = WithDir(dir_.path() + "/s");
    options_.block_tokens = kBlock;
    options_.kv_storage = KvStorage::kFp16;
  }
  int Random(int n) {
    return static_cast<int>(random_() % static_cast<unsigned>(n));
  }
  // The beginning of one script, then something else or nothing.
  Tokens RandomPrompt() {
    Tokens tokens = Ids(1 + Random(150));
    for (int i = Random(3) == 0 ? Random(30) : 0; i > 0; --i) {
      tokens.push_back(10 + Random(3));
    }
    return tokens;
  }
  void DeleteSome() {
    std::vector<fs::path> files;
    const std::string blocks = options_.prompt_cache_dir + "/blocks";
    for (const auto& entry : fs::recursive_directory_iterator(blocks)) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    for (const fs::path& path : files) {
      if (Random(5) == 0) fs::remove(path);
    }
  }
  bool IsThere(const Digest& id) const {
    return there_ != nullptr &&
           there_->Exists(RemoteKey(id, 0), InAMinute()).value();
  }
  // How much of the prompt there is at least and at most, when sessions hold
  // its first `n_held` tokens: a lookup need not find a block by its beginning.
  std::pair<int, int> Search(const Tokens& prompt, int n_held,
                             bool with_server) const {
    const AllImages images(options_.prompt_cache_dir);
    const int n = static_cast<int>(prompt.size());
    if (images.empty()) return {n_held, n_held};
    Digest parent = images.root_id();
    int at = 0;
    while (at + kBlock <= n) {
      const auto tokens =
          std::span(prompt).subspan(static_cast<std::size_t>(at), kBlock);
      const Digest id = ChildId(parent, tokens);
      if (at + kBlock > n_held && !images.Has(id) &&
          !(with_server && IsThere(id))) {
        break;
      }
      parent = id;
      at += kBlock;
    }
    const auto [exact, any] = images.LongestStart(
        parent, std::span(prompt).subspan(static_cast<std::size_t>(at)));
    return {std::min(at + exact, n - 1), std::min(at + any, n - 1)};
  }
  // One prompt with holes on the disk, and another one of `engine` in memory.
  void Round(Engine& engine) {
    const auto other = engine.NewSession().value();
    const Tokens held = RandomPrompt(), prompt = RandomPrompt();
    ASSERT_TRUE(other->Sync(held, nullptr).ok());
    ASSERT_TRUE(engine.DrainSaves().ok());  // what it fetched is kept by now
    DeleteSome();
    const auto n_common = static_cast<int>(
        std::mismatch(held.begin(), held.end(), prompt.begin(), prompt.end())
            .first -
        held.begin());
    const int n_held = n_common / kBlock * kBlock;
    const auto [at_least, at_most] = Search(prompt, n_held, true);
    const int on_disk = Search(prompt, 0, false).second;
    n_over_a_hole_ += at_least > std::max(n_held, on_disk);
    n_from_server_ += at_least > Search(prompt, n_held, false).second;
    const auto session = engine.NewSession().value();
    const auto report = session->Sync(prompt, nullptr);
    ASSERT_TRUE(report.ok()) << report.error().message;
    EXPECT_GE(report->reused_tokens, at_least) << report->miss_reason;
    EXPECT_LE(report->reused_tokens, at_most);
    EXPECT_TRUE(report->warnings.empty());
    // What was missing is written again for those who come later; a few tokens
    // of a tail may wait for the next save.
    ASSERT_TRUE(session->Generate({.n_tokens_max = 1}, nullptr).ok());
    ASSERT_TRUE(engine.DrainSaves().ok());
    const auto n = static_cast<int>(prompt.size());
    EXPECT_GE(Search(prompt, 0, false).first,
              std::min(n / kBlock * kBlock, n - 1));
  }

  TempDir dir_;
  EngineOptions options_;
  std::mt19937 random_{11};
  std::unique_ptr<RedisServers> there_;  // null: no shared server
  int n_over_a_hole_ = 0, n_from_server_ = 0;
};

TEST_F(LongestMatch, IsWhatMemoryAndDiskHaveTogether) {
  for (int round = 0; round < 40; ++round) {
    if (round % 8 == 0) {
      fs::remove_all(options_.prompt_cache_dir);
      for (int i = 0; i < 4; ++i) MustAsk(options_, RandomPrompt());
    }
    ASSERT_NO_FATAL_FAILURE(Round(*Engine::Open(options_).value()));
  }
  EXPECT_GT(n_over_a_hole_, 0);
}

// The server has holes, too: half of the launches do not know it.
TEST_F(LongestMatch, IsWhatMemoryDiskAndAServerHaveTogether) {
  std::optional<RedisServer> server;
  EngineOptions shared;
  for (int round = 0; round < 40; ++round) {
    if (round % 8 == 0) {
      fs::remove_all(options_.prompt_cache_dir);
      server.emplace();
      if (!server->WaitUntilUp(server->url())) {
        GTEST_SKIP() << "no redis-server";
      }
      there_ = RedisServers::Connect(server->url(), InAMinute()).value();
      shared = options_;
      shared.cache_remote = server->text();
      shared.cache_remote_trusted = true;
      shared.cache_remote_deadline_ms = 60'000;
      for (int i = 0; i < 8; ++i) {
        MustAsk(i % 2 == 0 ? shared : options_, RandomPrompt());
      }
    }
    ASSERT_NO_FATAL_FAILURE(Round(*Engine::Open(shared).value()));
  }
  EXPECT_GT(n_over_a_hole_, 0);
  EXPECT_GT(n_from_server_, 0);
}

}  // namespace
}  // namespace hearth
