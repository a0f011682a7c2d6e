// Which node of a Redis Cluster has a key (cluster specification of Redis):
// 16,384 slots, each on one node, and a key's slot by its CRC16. What nodes say
// about each other is read here; all of it is from a socket.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth {

struct RedisNode {
  std::string host;
  int port = 0;
  auto operator<=>(const RedisNode&) const = default;
  std::string Name() const { return host + ":" + std::to_string(port); }
};

// "Not here": MOVED, for good, or ASK, for this one time.
struct RedisRedirect {
  bool once = false;
  int slot = 0;
  RedisNode to;
};

inline constexpr int kClusterSlots = 16384;

// CRC16 (XMODEM) of the key, of which no part is a hash tag.
int ClusterSlotOf(std::string_view key);

// "MOVED 3999 10.0.0.7:6381" or "ASK ..."; nothing for another text. An empty
// host is that of the node which says it.
std::optional<RedisRedirect> ParseRedirect(std::string_view text,
                                           const RedisNode& said_by);

class ClusterMap {
 public:
  // Nodes that are remembered; a cluster has fewer.
  static constexpr std::size_t kNodesMax = 256;

  // The reply of CLUSTER NODES. What cannot be read of it is left out: a node
  // that is not known is found by a redirection.
  void Read(std::string_view text, const RedisNode& said_by);
  void Move(int slot, const RedisNode& to);
  // Null: not known.
  const RedisNode* NodeOf(int slot) const;
  const std::vector<RedisNode>& nodes() const { return nodes_; }
  bool empty() const { return nodes_.empty(); }

 private:
  // Its number + 1; 0: no room for one more.
  std::uint16_t NumberOf(const RedisNode& node);

  std::vector<RedisNode> nodes_;
  std::array<std::uint16_t, kClusterSlots> slots_{};  // numbers; 0: not known
};

}  // namespace hearth
