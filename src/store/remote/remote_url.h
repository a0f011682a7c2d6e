// Where a shared tier is: redis://[[user]:password@]host[:port][/db], or
// rediss:// for TLS.
#pragma once

#include <string>

#include "hearth/result.h"

namespace hearth {

struct RemoteUrl {
  bool tls = false;
  std::string user = {};      // empty: the default one
  std::string password = {};  // empty: none is sent
  std::string host = {};
  int port = 6379;
  int database = 0;

  // For messages: never the password.
  std::string Name() const {
    return host + ":" + std::to_string(port) + "/" + std::to_string(database);
  }
};

// kInvalidArgument, without repeating the password.
Result<RemoteUrl> ParseRemoteUrl(const std::string& text);

}  // namespace hearth
