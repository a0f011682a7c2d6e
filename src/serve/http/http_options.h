// How long a client may take, and how much of the server.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "serve/http/request_parser.h"

namespace hearth::serve {

struct HttpTimes {
  int head_ms = 10'000;  // from its first byte
  int body_ms = 60'000;  // then at least body_bytes_per_s on average
  int body_bytes_per_s = 1024;
  int idle_ms = 75'000;   // between two requests
  int write_ms = 60'000;  // without a byte taken
};

struct HttpOptions {
  // The second of the defaults is left out where the machine has no IPv6.
  std::vector<std::string> addresses = {"127.0.0.1", "::1"};
  int port = 8080;  // 0: any free one
  int connections_max = 256;
  std::size_t stream_bytes = std::size_t{1} << 20;  // waiting to be read
  HttpLimits limits = {};
  HttpTimes times = {};
};

}  // namespace hearth::serve
