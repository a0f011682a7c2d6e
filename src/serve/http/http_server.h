// Listens, and gives each request to a Handler.
//
// Threads  one calls Run; all other functions may be called by any thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "hearth/result.h"
#include "serve/http/http_options.h"
#include "serve/http/message.h"

namespace hearth::serve {

class HttpServer {
 public:
  // Ready to accept. `handler` outlives it. kIo when the port is taken, naming
  // it; kInvalidArgument for an address that is none of this machine's.
  static Result<std::unique_ptr<HttpServer>> Listen(const HttpOptions& options,
                                                    Handler& handler);
  virtual ~HttpServer() = default;

  virtual int port() const = 0;
  virtual std::vector<std::string> addresses() const = 0;
  virtual int n_connections() const = 0;

  virtual void Run() = 0;  // until Stop
  // No new connections; those that answer close when they are done.
  virtual void Drain() = 0;
  virtual void Stop() = 0;  // closes everything
  // Calls `then` on Run's thread, after so long.
  virtual void Later(int ms, std::function<void()> then) = 0;
};

}  // namespace hearth::serve
