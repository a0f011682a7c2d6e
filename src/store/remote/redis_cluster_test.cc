// Three redis-servers in cluster mode between two machines.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "store/remote/redis_server_testing.h"
#include "store/remote/remote_tier.h"
#include "store/tests/store_testing.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

class RedisClusterTest : public testing::Test {
 protected:
  void SetUp() override {
    for (int i = 0; i < 3; ++i) nodes_.push_back(Node(i));
    // redis-cli comes with redis-server.
    const char* const slots[] = {"0 5460", "5461 10922", "10923 16383"};
    bool ready = true;
    for (int i = 0; i < 3; ++i) {
      ready &= Until(i, std::string("cluster addslotsrange ") + slots[i], "OK");
    }
    for (int i = 1; i < 3 && ready; ++i) {
      ready &= Until(
          0,
          "cluster meet 127.0.0.1 " + std::to_string(nodes_[At(i)]->url().port),
          "OK");
    }
    for (int i = 0; i < 3 && ready; ++i) {
      ready &= Until(i, "cluster info", "cluster_known_nodes:3") &&
               Until(i, "cluster info", "cluster_state:ok") &&
               Until(i, "cluster info", "cluster_slots_ok:16384");
    }
    if (!ready) GTEST_SKIP() << "no redis-server with clusters";
  }

  static std::size_t At(int i) { return static_cast<std::size_t>(i); }
  // Whether node `i` says `answer` to the command within ten seconds.
  bool Until(int i, const std::string& command, const std::string& answer) {
    const std::string line =
        "redis-cli -p " + std::to_string(nodes_[At(i)]->url().port) + " " +
        command + " 2>/dev/null | grep -q '" + answer + "'";
    for (int n = 0; n < 200; ++n) {
      if (std::system(line.c_str()) == 0) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return false;
  }

  // Nodes talk to each other at a port that is 10,000 higher.
  std::unique_ptr<RedisServer> Node(int i) const {
    std::unique_ptr<RedisServer> node;
    do {
      node = std::make_unique<RedisServer>(std::vector<std::string>{
          "--cluster-enabled", "yes", "--cluster-config-file",
          dir_.path() + "/nodes" + std::to_string(i), "--cluster-node-timeout",
          "2000", "--cluster-require-full-coverage", "no"});
    } while (node->url().port > 65535 - 10000);
    return node;
  }

  TempDir dir_;
  std::vector<std::unique_ptr<RedisServer>> nodes_;
};

TEST_F(RedisClusterTest, EveryKeyIsFoundWhereverItIs) {
  auto writer = RedisServers::Connect(nodes_[0]->url(), InAMinute()).value();
  std::vector<std::string> keys;
  for (int i = 0; i < 24; ++i) {
    keys.push_back(RemoteKey(Sha256().Field(std::uint64_t(i)).Finish(), 0));
    const auto set =
        writer->Set(keys.back(), AsBytes(keys.back()), InAMinute());
    ASSERT_TRUE(set.ok()) << set.error().message;
    EXPECT_TRUE(*set);
  }
  // Another machine, and another node that it knows.
  auto reader = RedisServers::Connect(nodes_[2]->url(), InAMinute()).value();
  const auto values = reader->Get(keys, 1 << 20, InAMinute());
  ASSERT_TRUE(values.ok()) << values.error().message;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    EXPECT_EQ((*values)[i], keys[i]);
  }
  EXPECT_TRUE(*reader->Exists(keys[5], InAMinute()));
  EXPECT_FALSE(*reader->Exists("nothing", InAMinute()));
  EXPECT_EQ(reader->trouble(), "");
}

TEST_F(RedisClusterTest, ANodeThatGoesTakesOnlyWhatItHad) {
  auto servers = RedisServers::Connect(nodes_[0]->url(), InAMinute()).value();
  std::vector<std::string> keys;
  for (int i = 0; i < 24; ++i) {
    keys.push_back("k" + std::to_string(i));
    ASSERT_TRUE(*servers->Set(keys.back(), AsBytes(keys.back()), InAMinute()));
  }
  nodes_[1]->Stop();
  const auto values = servers->Get(keys, 1 << 20, InAMinute());
  ASSERT_TRUE(values.ok()) << values.error().message;
  std::size_t n_there = 0;
  for (const auto& value : *values) n_there += value.has_value() ? 1 : 0;
  EXPECT_GT(n_there, 4u);
  EXPECT_LT(n_there, keys.size());
  EXPECT_NE(servers->trouble().find("node 127.0.0.1:"), std::string::npos);
}

}  // namespace
}  // namespace hearth
