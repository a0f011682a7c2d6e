// The few Redis commands that a shared tier needs, with deadlines and with
// limits on what the other side may send.
//
// Errors  kCancelled: the deadline. kIo: the connection, or an error reply.
//         kCorrupt: not the Redis protocol, or more bytes than were asked for.
//         After an error the connection is closed and of no use.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "hearth/result.h"
#include "store/remote/cluster_map.h"
#include "store/remote/socket.h"

namespace hearth {

struct RedisReply {
  std::optional<std::string> text;
  long long number = 0;
  std::optional<RedisRedirect> elsewhere;  // then it is nothing else
};

class RedisClient {
 public:
  // Connects, sends the password and selects the database.
  static Result<std::unique_ptr<RedisClient>> Connect(const RemoteUrl& url,
                                                      Deadline deadline);
  ~RedisClient();
  RedisClient(const RedisClient&) = delete;
  RedisClient& operator=(const RedisClient&) = delete;

  // One reply a key. `asking`: the node that was asked before said ASK.
  using Replies = std::vector<RedisReply>;
  // The value of each key, no text for those that are not there. All keys are
  // asked for at once; together the values may have `bytes_max` bytes.
  Result<Replies> Get(std::span<const std::string> keys, std::size_t bytes_max,
                      bool asking, Deadline deadline);
  // A number: 0 when it is not there.
  Result<Replies> Exists(const std::string& key, bool asking,
                         Deadline deadline);
  Result<Replies> Set(const std::string& key, ByteSpan value, bool asking,
                      Deadline deadline);
  // What a node of a cluster says about its nodes.
  Result<std::string> ClusterNodes(Deadline deadline);

 private:
  struct State;
  explicit RedisClient(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace hearth
