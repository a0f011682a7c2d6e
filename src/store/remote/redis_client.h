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
#include "store/remote/socket.h"

namespace hearth {

class RedisClient {
 public:
  // Connects, sends the password and selects the database.
  static Result<std::unique_ptr<RedisClient>> Connect(const RemoteUrl& url,
                                                      Deadline deadline);
  ~RedisClient();
  RedisClient(const RedisClient&) = delete;
  RedisClient& operator=(const RedisClient&) = delete;

  // The value of each key, nothing for those that are not there. All keys are
  // asked for at once; together the values may have `bytes_max` bytes.
  Result<std::vector<std::optional<std::string>>> Get(
      std::span<const std::string> keys, std::size_t bytes_max,
      Deadline deadline);
  Result<bool> Exists(const std::string& key, Deadline deadline);
  Result<void> Set(const std::string& key, ByteSpan value, Deadline deadline);

 private:
  struct State;
  explicit RedisClient(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace hearth
