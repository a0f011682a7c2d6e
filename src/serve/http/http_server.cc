#include "serve/http/http_server.h"

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <set>

#include "serve/http/connection.h"
#include "serve/http/response_text.h"

namespace hearth::serve {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

class TcpServer final : public HttpServer {
 public:
  TcpServer(const HttpOptions& options, Handler& handler)
      : options_(options), handler_(handler), port_(options.port) {}
  ~TcpServer() override {
    // Their ends would call back into what is being destroyed.
    for (const auto& connection : connections_) connection->Close(true);
    connections_.clear();
  }

  Result<void> Open();
  int port() const override { return port_; }
  std::vector<std::string> addresses() const override { return addresses_; }
  int n_connections() const override { return n_connections_.load(); }

  void Run() override {
    const auto work = asio::make_work_guard(context_);
    context_.run();
  }
  void Drain() override {
    asio::post(context_, [this] { CloseAll(/*now=*/false); });
  }
  void Stop() override {
    asio::post(context_, [this] {
      CloseAll(/*now=*/true);
      context_.stop();
    });
  }
  void Later(int ms, std::function<void()> then) override {
    asio::post(context_, [this, ms, then = std::move(then)]() mutable {
      auto timer = std::make_shared<asio::steady_timer>(
          context_, std::chrono::milliseconds(ms));
      timer->async_wait(
          [timer, then = std::move(then)](const error_code& error) {
            if (!error) then();
          });
    });
  }

 private:
  Result<void> Bind(const std::string& name);
  void Accept(tcp::acceptor& acceptor);
  void Take(tcp::socket socket);
  void CloseAll(bool now);

  const HttpOptions options_;
  Handler& handler_;
  int port_;
  std::vector<std::string> addresses_;
  asio::io_context context_{1};
  std::vector<std::unique_ptr<tcp::acceptor>> acceptors_;
  std::set<std::shared_ptr<Connection>> connections_;
  std::atomic<int> n_connections_{0};
};

Result<void> TcpServer::Bind(const std::string& name) {
  error_code error;
  const auto address = asio::ip::make_address(name, error);
  if (error) {
    return {Code::kInvalidArgument,
            name + " is no address; give one as 127.0.0.1, 0.0.0.0 or ::"};
  }
  const tcp::endpoint end(address, static_cast<unsigned short>(port_));
  auto acceptor = std::make_unique<tcp::acceptor>(context_);
  acceptor->open(end.protocol(), error);
  if (!error) acceptor->set_option(tcp::acceptor::reuse_address(true), error);
  if (!error && address.is_v6()) {
    acceptor->set_option(asio::ip::v6_only(true), error);
  }
  if (!error) acceptor->bind(end, error);
  if (!error)
    acceptor->listen(asio::socket_base::max_listen_connections, error);
  if (error == asio::error::address_in_use) {
    return {Code::kIo, "port " + std::to_string(port_) + " of " + name +
                           " is taken by another program; end it, or choose "
                           "another port"};
  }
  if (error == asio::error::address_family_not_supported ||
      error.value() == EADDRNOTAVAIL) {
    return {Code::kNotFound, name + ": not an address of this machine"};
  }
  if (error)
    return {Code::kIo, "listening on " + name + ": " + error.message()};
  port_ = acceptor->local_endpoint(error).port();
  addresses_.push_back(name);
  acceptors_.push_back(std::move(acceptor));
  return {};
}

Result<void> TcpServer::Open() {
  for (const std::string& name : options_.addresses) {
    const auto bound = Bind(name);
    // A machine without IPv6 has the other loopback address.
    const bool spare = name == "::1" && !acceptors_.empty() && !bound.ok() &&
                       bound.error().code == Code::kNotFound;
    if (!bound.ok() && !spare) return bound.error();
  }
  for (const auto& acceptor : acceptors_) Accept(*acceptor);
  return {};
}

void TcpServer::Accept(tcp::acceptor& acceptor) {
  acceptor.async_accept(
      [this, &acceptor](const error_code& error, tcp::socket socket) {
        if (!acceptor.is_open()) return;
        if (!error) Take(std::move(socket));
        if (error == asio::error::no_descriptors) {
          // The system has no more sockets; asking again at once would spin.
          Later(100, [this, &acceptor] {
            if (acceptor.is_open()) Accept(acceptor);
          });
          return;
        }
        Accept(acceptor);
      });
}

void TcpServer::Take(tcp::socket socket) {
  if (n_connections_.load() >= options_.connections_max) {
    const HttpAnswer full = handler_.Problem(
        {}, {503,
             "this server has as many connections as it takes; try again "
             "later"});
    auto bytes = std::make_shared<std::string>(
        ResponseHead(full.status, full.content_type, full.headers,
                     BodyEnd::kLength, full.body.size(), false) +
        full.body);
    auto shared = std::make_shared<tcp::socket>(std::move(socket));
    // A new connection has room for so little: the write is done at once.
    asio::async_write(*shared, asio::buffer(*bytes),
                      [shared, bytes](const error_code&, std::size_t) {});
    return;
  }
  n_connections_.fetch_add(1);
  auto connection = MakeConnection(
      std::move(socket), options_, handler_, [this](Connection* ended) {
        n_connections_.fetch_sub(1);
        for (auto it = connections_.begin(); it != connections_.end(); ++it) {
          if (it->get() != ended) continue;
          connections_.erase(it);
          break;
        }
      });
  connections_.insert(connection);
  connection->Begin();
}

void TcpServer::CloseAll(bool now) {
  error_code ignored;
  for (const auto& acceptor : acceptors_) acceptor->close(ignored);
  // Each takes itself out of the set.
  const std::vector<std::shared_ptr<Connection>> all(connections_.begin(),
                                                     connections_.end());
  for (const auto& connection : all) connection->Close(now);
}

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::Listen(
    const HttpOptions& options, Handler& handler) {
  auto server = std::make_unique<TcpServer>(options, handler);
  HEARTH_TRY(server->Open());
  return std::unique_ptr<HttpServer>(std::move(server));
}

}  // namespace hearth::serve
