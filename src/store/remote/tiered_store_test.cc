// Two machines with a directory each and one redis-server between them.
#include "store/remote/tiered_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>

#include "store/directory/layout.h"
#include "store/remote/shared_tier_testing.h"

namespace hearth {
namespace {

namespace fs = std::filesystem;

TEST_F(SharedTier, WhatOneMachineSavesTheOtherFindsAndKeeps) {
  if (!server_.WaitUntilUp(server_.url())) GTEST_SKIP() << "no redis-server";
  const TinyPrompt prompt(identity_, spec_, TinyTokens(41));
  ASSERT_TRUE(prompt.SaveTo(*Machine("a", server_.text())).ok());
  {
    const auto b = Machine("b", server_.text());
    const StoreMatch match = Find(*b, prompt);
    EXPECT_EQ(match.n_tokens, 32);  // tails stay where they are
    EXPECT_EQ(match.n_tokens_remote, 32);
    EXPECT_TRUE(match.warnings.empty());
  }
  server_.Stop();
  const StoreMatch kept = Find(*Machine("b", ""), prompt);
  EXPECT_EQ(kept.n_tokens, 32);
  EXPECT_EQ(kept.n_tokens_remote, 0);
}

// Not memory of the process that fetched it, also before the next start.
TEST_F(SharedTier, WhatWasFetchedIsMappedFromTheDirectory) {
  if (!server_.WaitUntilUp(server_.url())) GTEST_SKIP() << "no redis-server";
  const TinyPrompt prompt(identity_, spec_, TinyTokens(32));
  ASSERT_TRUE(prompt.SaveTo(*Machine("a", server_.text())).ok());
  const auto b = Machine("b", server_.text());
  const StoreMatch match = Find(*b, prompt);
  ASSERT_EQ(match.n_tokens_remote, 32);
  std::ifstream maps("/proc/self/maps");
  std::vector<std::string> lines;
  for (std::string line; std::getline(maps, line);) lines.push_back(line);
  for (const StoredBlock& block : match.blocks) {
    EXPECT_TRUE(block.is_mapped);
    const auto at = reinterpret_cast<std::uintptr_t>(block.payload.data());
    const auto holds = [&](const std::string& line) {
      unsigned long from = 0, to = 0;
      return std::sscanf(line.c_str(), "%lx-%lx", &from, &to) == 2 &&
             from <= at && at < to &&
             line.find(dir_.path() + "/b/blocks/") != std::string::npos;
    };
    EXPECT_TRUE(std::any_of(lines.begin(), lines.end(), holds));
  }
  ASSERT_TRUE(b->Drain(0).ok());
  EXPECT_EQ(Find(*Machine("b", ""), prompt).n_tokens, 32);
}

// States at the ends of whole blocks, whose blocks travel.
TEST_F(SharedTier, StatesOfOneMachineAreTheOthersToo) {
  if (!server_.WaitUntilUp(server_.url())) GTEST_SKIP() << "no redis-server";
  spec_.states = {{StateRule::kLastInputs, {2, 8}}};
  identity_ = TinyIdentity(spec_);
  const TinyPrompt prompt(identity_, spec_, TinyTokens(50));
  {
    const auto a = Machine("a", server_.text());
    ASSERT_TRUE(prompt.SaveTo(*a).ok());
    for (const std::size_t n : {16, 32, 41}) {
      const std::vector<std::byte> states(64, static_cast<std::byte>(n));
      ASSERT_TRUE(a->SaveState(prompt.chain, spec_, n, states).ok());
    }
    ASSERT_TRUE(a->Drain(0).ok());
  }
  for (const std::string& url : {server_.text(), std::string()}) {
    const auto b = Machine("b", url);
    const StoreMatch match = Find(*b, prompt);
    EXPECT_EQ(match.n_tokens, 32);
    ASSERT_TRUE(match.state.has_value());
    EXPECT_EQ(match.state->payload[5], std::byte{32});
    EXPECT_TRUE(match.warnings.empty());
    ASSERT_TRUE(b->Drain(0).ok());
  }
}

// With no room for it here it serves all the same.
TEST_F(SharedTier, AFullDirectoryStillServesWhatIsFetched) {
  if (!server_.WaitUntilUp(server_.url())) GTEST_SKIP() << "no redis-server";
  const TinyPrompt prompt(identity_, spec_, TinyTokens(64));
  ASSERT_TRUE(prompt.SaveTo(*Machine("a", server_.text())).ok());
  StoreOptions options;
  options.remote_url = server_.text();
  options.remote_trusted = true;
  options.remote_deadline_ms = 20'000;
  options.disk_budget_bytes = 10'000;
  const auto store = KvStore::Open(dir_.path() + "/b", options).value();
  const StoreMatch match = Find(*store, prompt);
  EXPECT_EQ(match.n_tokens, 64);
  EXPECT_TRUE(match.blocks.front().is_mapped);
  EXPECT_FALSE(match.blocks.back().is_mapped);
}

TEST_F(SharedTier, WhatIsNotUploadedIsSaidOnce) {
  if (!server_.WaitUntilUp(server_.url())) GTEST_SKIP() << "no redis-server";
  const auto store = Machine("a", server_.text(), nullptr, /*deadline_ms=*/100);
  server_.Pause();
  const TinyPrompt prompt(identity_, spec_, TinyTokens(64));
  ASSERT_TRUE(prompt.SaveTo(*store).ok());
  const auto drained = store->Drain(0);
  ASSERT_FALSE(drained.ok());
  EXPECT_NE(drained.error().message.find("4 blocks were not uploaded"),
            std::string::npos)
      << drained.error().message;
  EXPECT_TRUE(store->Drain(0).ok()) << "it was said";
  server_.Continue();
}

// What is missing here and what is missing there are different blocks.
TEST_F(SharedTier, TheLongestMatchOverBothFillsTheHolesOfEither) {
  if (!server_.WaitUntilUp(server_.url())) GTEST_SKIP() << "no redis-server";
  std::mt19937 random(7);
  auto client = RedisServers::Connect(server_.url(), InAMinute()).value();
  for (int round = 0; round < 12; ++round) {
    const TinyPrompt prompt(identity_, spec_,
                            TinyTokens(16 * 9 + 5, 1000 * round));
    ASSERT_TRUE(prompt.SaveTo(*Machine("a", server_.text())).ok());
    ASSERT_TRUE(prompt.SaveTo(*Machine("b", "")).ok());
    int n_full = 0;
    bool unbroken = true;
    for (std::size_t i = 0; i < 9; ++i) {
      const bool here = random() % 2 == 0, there = random() % 4 != 0;
      if (!here) {
        const StorePath path = BlockPath(prompt.blocks[i].id);
        fs::remove(dir_.path() + "/b/" + path.folder + "/" + path.name);
      }
      if (!there) {
        ASSERT_TRUE(
            client->Set(RemoteKey(prompt.blocks[i].id, 0), {}, InAMinute())
                .ok());
      }
      unbroken = unbroken && (here || there);
      n_full += unbroken ? 16 : 0;
    }
    const StoreMatch match = Find(*Machine("b", server_.text()), prompt);
    EXPECT_EQ(match.n_tokens, unbroken ? 16 * 9 + 5 : n_full) << round;
  }
}

TEST_F(SharedTier, LocalAndRemoteBlocksJoin) {
  if (!server_.WaitUntilUp(server_.url())) GTEST_SKIP() << "no redis-server";
  const TinyPrompt whole(identity_, spec_, TinyTokens(100));
  ASSERT_TRUE(whole.SaveTo(*Machine("a", server_.text())).ok());
  const TinyPrompt start(identity_, spec_, TinyTokens(41));
  ASSERT_TRUE(start.SaveTo(*Machine("b", "")).ok());
  // 32 tokens and a tail of 9 are here; the tail gives way to whole blocks.
  const StoreMatch match = Find(*Machine("b", server_.text()), whole);
  EXPECT_EQ(match.n_tokens, 96);
  EXPECT_EQ(match.n_tokens_remote, 64);
}

TEST_F(SharedTier, BlocksLargerThanAValueAreSplit) {
  if (!server_.WaitUntilUp(server_.url())) GTEST_SKIP() << "no redis-server";
  // 5 MiB a block
  const KvSpec large(UniformKv{.n_layers = 5,
                               .n_heads = 8,
                               .head_dim = 1024,
                               .key_format = KvFormat::kF16,
                               .value_format = KvFormat::kF16,
                               .block_tokens = 32});
  const KvIdentity identity = TinyIdentity(large);
  const TinyPrompt prompt(identity, large, TinyTokens(32));
  ASSERT_TRUE(prompt.SaveTo(*Machine("a", server_.text())).ok());
  EXPECT_EQ(Find(*Machine("b", server_.text()), prompt).n_tokens_remote, 32);
  auto client = RedisServers::Connect(server_.url(), InAMinute()).value();
  const std::vector<std::string> keys = {RemoteKey(prompt.blocks[0].id, 0),
                                         RemoteKey(prompt.blocks[0].id, 1)};
  const auto values = client->Get(keys, 20 << 20, InAMinute()).value();
  for (const auto& value : values) {
    ASSERT_TRUE(value.has_value());
    EXPECT_LE(value->size(), kRemoteValueBytesMax);
  }
  // A part that is lost is a miss.
  ASSERT_TRUE(client->Set(keys[1], AsBytes("short"), InAMinute()).ok());
  EXPECT_EQ(Find(*Machine("c", server_.text()), prompt).n_tokens, 0);
}

TEST_F(SharedTier, AServerThatIsDownOrSilentCostsItsDeadlineOnce) {
  const TinyPrompt prompt(identity_, spec_, TinyTokens(41));
  const bool real = server_.WaitUntilUp(server_.url());
  if (!real) GTEST_SKIP() << "no redis-server";
  server_.Pause();  // accepts connections and says nothing
  const auto store = Machine("a", server_.text(), nullptr, /*deadline_ms=*/100);
  const auto start = std::chrono::steady_clock::now();
  const StoreMatch first = Find(*store, prompt);
  EXPECT_EQ(first.warnings.size(), 1u);
  EXPECT_GE(std::chrono::steady_clock::now() - start,
            std::chrono::milliseconds(100));
  for (int i = 0; i < 20; ++i) {
    const StoreMatch match = Find(*store, prompt);
    EXPECT_TRUE(match.warnings.empty());
    EXPECT_NE(match.miss_reason.find("off after a failure"), std::string::npos);
  }
  EXPECT_TRUE(prompt.SaveTo(*store).ok());
  EXPECT_EQ(Find(*store, prompt).n_tokens, 41);
  server_.Continue();
}

}  // namespace
}  // namespace hearth
