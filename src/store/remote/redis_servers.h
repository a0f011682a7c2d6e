// A Redis server, or the nodes of a Redis Cluster when the server says that it
// is one of them. The rest of the shared tier does not know which.
//
// Errors  as RedisClient; after one, connect anew. A node of a cluster that
//         cannot be reached is no error: what it has is not there, nothing is
//         taken by it, and trouble() says so.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "store/remote/cluster_map.h"
#include "store/remote/redis_client.h"

namespace hearth {

class RedisServers {
 public:
  // Connects to the server that the URL names.
  static Result<std::unique_ptr<RedisServers>> Connect(const RemoteUrl& url,
                                                       Deadline deadline);

  Result<std::vector<std::optional<std::string>>> Get(
      std::span<const std::string> keys, std::size_t bytes_max,
      Deadline deadline);
  Result<bool> Exists(const std::string& key, Deadline deadline);
  // False: its node cannot be reached.
  Result<bool> Set(const std::string& key, ByteSpan value, Deadline deadline);

  // A node that could not be reached, and why; empty: all were.
  const std::string& trouble() const { return trouble_; }

 private:
  explicit RedisServers(RemoteUrl url) : url_(std::move(url)) {}

  // Where a key is asked for next.
  struct Target {
    RedisNode node;
    bool asking = false;
  };
  // What one command over some keys does at a node.
  using Command = std::function<Result<std::vector<RedisReply>>(
      RedisClient&, std::span<const std::size_t> keys, bool asking)>;

  Target TargetOf(const std::string& key) const;
  Result<RedisClient*> At(const RedisNode& node, Deadline deadline);
  // The reply for each key, wherever it is; nothing where its node is away.
  Result<std::vector<std::optional<RedisReply>>> AskAll(
      std::span<const std::string> keys, const Command& command,
      Deadline deadline);
  void Learn(const RedisNode& from, Deadline deadline);
  void GiveUpOn(const RedisNode& node, const Error& error);

  const RemoteUrl url_;
  std::map<RedisNode, std::unique_ptr<RedisClient>> clients_;
  ClusterMap map_;  // empty: no cluster
  std::map<RedisNode, std::chrono::steady_clock::time_point> away_until_;
  std::string trouble_;
};

}  // namespace hearth
