// What a server, or somebody who can write to it, cannot make a machine
// believe.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "store/directory/layout.h"
#include "store/remote/shared_tier_testing.h"

namespace hearth {
namespace {

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

  auto client = RedisServers::Connect(server_.url(), InAMinute()).value();
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

// Nobody has looked at what stands behind it, and existing is no proof.
TEST_F(SharedTier, OneBadValueHasAllBehindItReplaced) {
  if (!server_.WaitUntilUp(server_.url())) GTEST_SKIP() << "no redis-server";
  const TinyPrompt prompt(identity_, spec_, TinyTokens(16 * 5));
  ASSERT_TRUE(prompt.SaveTo(*Machine("a", server_.text())).ok());
  auto client = RedisServers::Connect(server_.url(), InAMinute()).value();
  for (const std::size_t i : {1u, 2u, 4u}) {
    const std::string key = RemoteKey(prompt.blocks[i].id, 0);
    std::string value =
        *client->Get(std::span(&key, 1), 1 << 20, InAMinute()).value()[0];
    value.back() = static_cast<char>(~value.back());
    ASSERT_TRUE(client->Set(key, AsBytes(value), InAMinute()).ok());
  }
  const auto store = Machine("b", server_.text());
  const StoreMatch match = Find(*store, prompt);
  EXPECT_EQ(match.n_tokens, 16);
  EXPECT_EQ(match.warnings.size(), 1u) << "it is asked for once";
  ASSERT_TRUE(prompt.SaveTo(*store).ok());
  ASSERT_TRUE(store->Drain(0).ok());
  const StoreMatch next = Find(*Machine("c", server_.text()), prompt);
  EXPECT_EQ(next.n_tokens_remote, 16 * 5);
  EXPECT_TRUE(next.warnings.empty());
}

TEST_F(SharedTier, WhatAnErrorOfTheServerSaysCannotMoveTheCursor) {
  if (!server_.WaitUntilUp(server_.url())) GTEST_SKIP() << "no redis-server";
  RemoteUrl url = server_.url();
  url.password = "\x1b[2J";
  const auto client = RedisServers::Connect(url, InAMinute());
  ASSERT_FALSE(client.ok());
  EXPECT_EQ(client.error().message.find('\x1b'), std::string::npos);
}

TEST_F(SharedTier, WhatComesFromTheServerIsVerified) {
  if (!server_.WaitUntilUp(server_.url())) GTEST_SKIP() << "no redis-server";
  const TinyPrompt prompt(identity_, spec_, TinyTokens(32));
  const TinyPrompt other(identity_, spec_, TinyTokens(32, 9));
  for (const TinyPrompt* p : {&prompt, &other}) {
    ASSERT_TRUE(p->SaveTo(*Machine("a", server_.text())).ok());
  }
  auto client = RedisServers::Connect(server_.url(), InAMinute()).value();
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
    auto client = RedisServers::Connect(url, InAMinute()).value();
    const std::string large(3 << 20, 'x');
    EXPECT_TRUE(client->Set("a", AsBytes(large), InAMinute()).ok());
    const std::string name = "a";
    EXPECT_EQ(client->Get(std::span(&name, 1), 4 << 20, InAMinute()).value()[0],
              large);
    url.host = "localhost";  // not what the certificate says
    const auto other = RedisServers::Connect(url, InAMinute());
    EXPECT_FALSE(other.ok());
    url.host = "127.0.0.1";
  }
  ::unsetenv("SSL_CERT_FILE");
  if (!up) GTEST_SKIP() << "no redis-server with TLS here";
  const auto unknown = RedisServers::Connect(url, InAMinute());
  ASSERT_FALSE(unknown.ok());
  EXPECT_NE(unknown.error().message.find("certificate"), std::string::npos)
      << unknown.error().message;
}

}  // namespace
}  // namespace hearth
