// One client's connection: requests one after the other, each answered before
// the next is looked at. Everything runs on the thread of the sockets.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <memory>

#include "serve/http/http_options.h"
#include "serve/http/message.h"

namespace hearth::serve {

class Connection {
 public:
  virtual ~Connection() = default;
  virtual void Begin() = 0;
  // Closes it now, or after the answer that is on its way.
  virtual void Close(bool now) = 0;
};

// `options` and `handler` outlive it. `ended` is called once, at its end.
std::shared_ptr<Connection> MakeConnection(
    boost::asio::ip::tcp::socket socket, const HttpOptions& options,
    Handler& handler, std::function<void(Connection*)> ended);

}  // namespace hearth::serve
