// Two machines with a directory each and one redis-server between them.
#include "store/remote/tiered_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "store/directory/layout.h"
#include "store/remote/redis_server_testing.h"
#include "store/tests/store_testing.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

namespace fs = std::filesystem;

class SharedTier : public testing::Test {
 protected:
  std::unique_ptr<KvStore> Machine(const std::string& name,
                                   const std::string& url,
                                   std::shared_ptr<const Vault> vault = nullptr,
                                   int deadline_ms = 60'000) const {
    StoreOptions options;
    options.remote_url = url;
    options.remote_deadline_ms = deadline_ms;
    options.remote_pause_s = 3600;
    options.remote_trusted = vault == nullptr;
    options.vault = std::move(vault);
    return KvStore::Open(dir_.path() + "/" + name, options).value();
  }
  StoreMatch Find(KvStore& store, const TinyPrompt& prompt) const {
    StoreMatch match =
        LookUp(store, prompt.identity, prompt.spec, prompt.tokens);
    EXPECT_TRUE(IsExact(match, prompt.identity, prompt.spec, prompt.tokens));
    return match;
  }

  TempDir dir_;
  KvSpec spec_ = TinySpec();
  KvIdentity identity_ = TinyIdentity(spec_);
  RedisServer server_;
};

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
  const TinyPrompt prompt(identity_, spec_, TinyTokens(64));
  const auto store = Machine("a", server_.text(), nullptr, /*deadline_ms=*/100);
  ASSERT_TRUE(prompt.SaveTo(*store).ok());
  EXPECT_TRUE(store->Drain(0).ok());
  server_.Pause();
  const TinyPrompt other(identity_, spec_, TinyTokens(64, 9));
  ASSERT_TRUE(other.SaveTo(*store).ok());
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
  auto client = RedisClient::Connect(server_.url(), InAMinute()).value();
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

TEST_F(SharedTier, WithoutAKeyAServerIsRefusedUnlessItIsTrusted) {
  StoreOptions options;
  options.remote_url = "redis://127.0.0.1:1";
  const auto refused = KvStore::Open(dir_.path() + "/x", options);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::kInvalidArgument);
  EXPECT_NE(refused.error().message.find("plant"), std::string::npos);
  options.remote_trusted = true;
  EXPECT_TRUE(KvStore::Open(dir_.path() + "/x", options).ok());
}

// Who can write to the server negates a payload and makes all checksums right.
TEST_F(SharedTier, AForgedBlockWithoutTheKeyIsNotUsedAndIsReplaced) {
  if (!server_.WaitUntilUp(server_.url())) GTEST_SKIP() << "no redis-server";
  Vault::Key bytes;
  bytes.fill(9);
  const auto key = std::make_shared<const Vault>(bytes);
  const auto machine = [&](const std::string& name,
                           std::shared_ptr<const Vault> with) {
    StoreOptions options;
    options.remote_url = server_.text();
    options.remote_deadline_ms = 60'000;
    options.remote_key = std::move(with);
    return KvStore::Open(dir_.path() + "/" + name, options).value();
  };
  const TinyPrompt prompt(identity_, spec_, TinyTokens(32));
  ASSERT_TRUE(prompt.SaveTo(*machine("a", key)).ok());
  ASSERT_EQ(Find(*machine("b", key), prompt).n_tokens_remote, 32);
  EXPECT_EQ(Find(*Machine("plain", server_.text()), prompt).n_tokens, 0)
      << "another space";

  auto client = RedisClient::Connect(server_.url(), InAMinute()).value();
  const std::string name = RemoteKey(prompt.blocks[0].id, 0, key.get());
  const auto forge = [&](ByteSpan mac) {
    std::vector<std::byte> payload = prompt.payloads[0];
    for (std::byte& b : payload) b = ~b;
    const TinyBlock& block = prompt.blocks[0];
    const auto header =
        EncodeBlockHeader(identity_, RootId(identity_), spec_, block.parent,
                          block.id, block.tokens, payload, 0, mac);
    std::vector<std::byte> value;
    AppendLe(value,
             std::uint64_t{header->size() + payload.size() + mac.size()});
    value.insert(value.end(), header->begin(), header->end());
    value.insert(value.end(), payload.begin(), payload.end());
    value.insert(value.end(), mac.begin(), mac.end());
    EXPECT_TRUE(client->Set(name, value, InAMinute()).ok());
  };
  const auto right =
      MakeBlockMac(*key, prompt.blocks[0].id, 0, prompt.payloads[0]);
  Vault::Key others;
  others.fill(8);
  int n = 0;
  for (const auto& mac : {std::vector<std::byte>{}, right,
                          MakeBlockMac(Vault(others), prompt.blocks[0].id, 0,
                                       prompt.payloads[0])}) {
    forge(mac);
    const auto store = machine("c" + std::to_string(n++), key);
    const StoreMatch match = Find(*store, prompt);
    EXPECT_EQ(match.n_tokens, 0);
    EXPECT_EQ(match.warnings.size(), 1u);
    // It is computed here, and the next machine finds it.
    ASSERT_TRUE(prompt.SaveTo(*store).ok());
    ASSERT_TRUE(store->Drain(0).ok());
    EXPECT_EQ(Find(*machine("d" + std::to_string(n), key), prompt).n_tokens,
              32);
  }
}

TEST_F(SharedTier, WhatAnErrorOfTheServerSaysCannotMoveTheCursor) {
  if (!server_.WaitUntilUp(server_.url())) GTEST_SKIP() << "no redis-server";
  RemoteUrl url = server_.url();
  url.password = "\x1b[2J";
  const auto client = RedisClient::Connect(url, InAMinute());
  ASSERT_FALSE(client.ok());
  EXPECT_EQ(client.error().message.find('\x1b'), std::string::npos);
}

TEST_F(SharedTier, ANodeOfAClusterIsRefusedByName) {
  RedisServer node({"--cluster-enabled", "yes", "--cluster-config-file",
                    dir_.path() + "/nodes.conf"});
  for (int i = 0; i < 500; ++i) {  // it answers no EXISTS
    if (RedisClient::Connect(node.url(), In(1000)).ok()) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  const TinyPrompt prompt(identity_, spec_, TinyTokens(32));
  const auto store = Machine("a", node.text());
  if (!RedisClient::Connect(node.url(), In(1000)).ok()) {
    GTEST_SKIP() << "no redis-server with clusters";
  }
  const StoreMatch match = Find(*store, prompt);
  ASSERT_EQ(match.warnings.size(), 1u);
  EXPECT_NE(match.warnings[0].find("a node of a Redis cluster"),
            std::string::npos)
      << match.warnings[0];
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
  auto client = RedisClient::Connect(server_.url(), InAMinute()).value();
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

TEST_F(SharedTier, WhatComesFromTheServerIsVerified) {
  if (!server_.WaitUntilUp(server_.url())) GTEST_SKIP() << "no redis-server";
  const TinyPrompt prompt(identity_, spec_, TinyTokens(32));
  const TinyPrompt other(identity_, spec_, TinyTokens(32, 9));
  for (const TinyPrompt* p : {&prompt, &other}) {
    ASSERT_TRUE(p->SaveTo(*Machine("a", server_.text())).ok());
  }
  auto client = RedisClient::Connect(server_.url(), InAMinute()).value();
  const std::string key = RemoteKey(prompt.blocks[0].id, 0);
  const auto get = [&](const std::string& k) {
    return *client->Get(std::span(&k, 1), 1 << 20, InAMinute()).value()[0];
  };
  const std::string good = get(key);
  std::vector<std::string> bad = {"",
                                  "x",
                                  good.substr(0, 100),
                                  good + "x",
                                  get(RemoteKey(other.blocks[0].id, 0)),
                                  std::string(good.size(), '\xff')};
  for (std::size_t i = 0; i < good.size(); i += 331) {
    bad.push_back(good);
    bad.back()[i] = static_cast<char>(bad.back()[i] ^ 4);
  }
  int n = 0;
  for (const std::string& value : bad) {
    ASSERT_TRUE(client->Set(key, AsBytes(value), InAMinute()).ok());
    StoreOptions trusting;
    trusting.verify = false;  // of one's own disk, not of others' servers
    trusting.remote_url = server_.text();
    trusting.remote_trusted = true;
    trusting.remote_deadline_ms = 60'000;
    const auto store =
        KvStore::Open(dir_.path() + "/v" + std::to_string(n++), trusting)
            .value();
    EXPECT_EQ(Find(*store, prompt).n_tokens, 0);
  }
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

TEST_F(SharedTier, EncryptedBlocksAreEncryptedThereToo) {
  if (!server_.WaitUntilUp(server_.url())) GTEST_SKIP() << "no redis-server";
  Vault::Key key;
  key.fill(7);
  const auto vault = std::make_shared<const Vault>(key);
  const TinyPrompt prompt(identity_, spec_, TinyTokens(32));
  ASSERT_TRUE(prompt.SaveTo(*Machine("a", server_.text(), vault)).ok());
  EXPECT_EQ(Find(*Machine("b", server_.text(), vault), prompt).n_tokens, 32);
  EXPECT_EQ(Find(*Machine("c", server_.text()), prompt).n_tokens, 0);
}

TEST_F(SharedTier, UrlsAreCheckedWhenTheStoreIsOpened) {
  StoreOptions options;
  options.remote_url = "http://example";
  EXPECT_EQ(KvStore::Open(dir_.path() + "/x", options).error().code,
            Code::kInvalidArgument);
}

TEST(SharedTierTls, CertificateAndNameAreChecked) {
  TempDir dir;
  const std::string cert = dir.path() + "/cert", key = dir.path() + "/key";
  const std::string make =
      "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 "
      "-nodes -days 2 -subj /CN=hearth-test -addext "
      "subjectAltName=IP:127.0.0.1 -keyout " +
      key + " -out " + cert + " 2>/dev/null";
  if (std::system(make.c_str()) != 0) GTEST_SKIP() << "no openssl here";
  RedisServer server({"--tls-cert-file", cert, "--tls-key-file", key,
                      "--tls-ca-cert-file", cert, "--tls-auth-clients", "no"},
                     /*tls=*/true);
  RemoteUrl url = server.url();
  url.tls = true;
  ::setenv("SSL_CERT_FILE", cert.c_str(), 1);
  const bool up = server.WaitUntilUp(url);
  if (up) {
    auto client = RedisClient::Connect(url, InAMinute()).value();
    const std::string large(3 << 20, 'x');
    EXPECT_TRUE(client->Set("a", AsBytes(large), InAMinute()).ok());
    const std::string name = "a";
    EXPECT_EQ(client->Get(std::span(&name, 1), 4 << 20, InAMinute()).value()[0],
              large);
    url.host = "localhost";  // not what the certificate says
    const auto other = RedisClient::Connect(url, InAMinute());
    EXPECT_FALSE(other.ok());
    url.host = "127.0.0.1";
  }
  ::unsetenv("SSL_CERT_FILE");
  if (!up) GTEST_SKIP() << "no redis-server with TLS here";
  const auto unknown = RedisClient::Connect(url, InAMinute());
  ASSERT_FALSE(unknown.ok());
  EXPECT_NE(unknown.error().message.find("certificate"), std::string::npos)
      << unknown.error().message;
}

}  // namespace
}  // namespace hearth
