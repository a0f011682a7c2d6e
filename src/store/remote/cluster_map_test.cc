#include "store/remote/cluster_map.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

const RedisNode kFirst{"10.0.0.1", 6379};

// The specification's example, and slots that redis-cli CLUSTER KEYSLOT says.
TEST(ClusterMap, SlotsAreThoseOfRedis) {
  EXPECT_EQ(ClusterSlotOf("123456789"), 0x31c3);
  EXPECT_EQ(ClusterSlotOf("foo"), 12182);
  EXPECT_EQ(ClusterSlotOf(""), 0);
}

TEST(ClusterMap, RedirectionsAreRead) {
  const auto moved = ParseRedirect("MOVED 3999 10.0.0.7:6381", kFirst);
  ASSERT_TRUE(moved.has_value());
  EXPECT_FALSE(moved->once);
  EXPECT_EQ(moved->slot, 3999);
  EXPECT_EQ(moved->to.Name(), "10.0.0.7:6381");
  const auto ask = ParseRedirect("ASK 1 :7000", kFirst);
  ASSERT_TRUE(ask.has_value());
  EXPECT_TRUE(ask->once);
  EXPECT_EQ(ask->to.Name(), "10.0.0.1:7000") << "who says it";
  EXPECT_EQ(ParseRedirect("MOVED 1 ::1:7000", kFirst)->to.host, "::1");
  for (const char* text :
       {"", "MOVED", "MOVED 3999", "MOVED 16384 h:1", "MOVED -1 h:1",
        "MOVED 1 h", "MOVED 1 h:0", "MOVED 1 h:65536", "MOVED 1 ?:6379",
        "MOVED 1 h\x1b[2J:1", "ERR no", "MOVEDX 1 h:1"}) {
    EXPECT_FALSE(ParseRedirect(text, kFirst).has_value()) << text;
  }
}

TEST(ClusterMap, NodesAndTheirSlotsAreRead) {
  ClusterMap map;
  map.Read(
      "aa 10.0.0.1:6379@16379 myself,master - 0 0 1 connected 0-5460\n"
      "bb 10.0.0.2:6379@16379,name master - 0 1 2 connected 5461-10922 "
      "[93->-cc]\n"
      "cc 10.0.0.3:6379@16379 slave aa 0 1 2 connected\n"
      "dd 10.0.0.4:6379@16379 master,fail - 0 1 2 disconnected 10923-16382\n"
      "ee :7001@17001 master - 0 1 2 connected 16383\n"
      "half a line\n",
      kFirst);
  EXPECT_EQ(map.NodeOf(0)->Name(), "10.0.0.1:6379");
  EXPECT_EQ(map.NodeOf(5461)->Name(), "10.0.0.2:6379");
  EXPECT_EQ(map.NodeOf(10922)->Name(), "10.0.0.2:6379");
  EXPECT_EQ(map.NodeOf(10923), nullptr) << "its node has failed";
  EXPECT_EQ(map.NodeOf(16383)->Name(), "10.0.0.1:7001");
  EXPECT_EQ(map.nodes().size(), 3u);
}

TEST(ClusterMap, NoServerMakesItGrowForEver) {
  ClusterMap map;
  for (int i = 0; i < 1000; ++i) {
    map.Move(i, {"h", i + 1});
  }
  EXPECT_EQ(map.nodes().size(), ClusterMap::kNodesMax);
  EXPECT_EQ(map.NodeOf(999), nullptr);
}

}  // namespace
}  // namespace hearth
