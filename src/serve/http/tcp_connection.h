// One connection: its requests are read and admitted (connection.cc), its
// answers written (connection_write.cc), and who takes too long is let go of.
// All of it on the sockets' thread; a Reply takes what other threads say there.
#pragma once

#include <array>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "serve/http/alarm.h"
#include "serve/http/connection.h"
#include "serve/http/outbox.h"
#include "serve/http/request_parser.h"
#include "serve/http/response_text.h"

namespace hearth::serve {

namespace asio = boost::asio;
using boost::system::error_code;

class TcpConnection final : public Connection,
                            public std::enable_shared_from_this<TcpConnection> {
 public:
  TcpConnection(asio::ip::tcp::socket socket, const HttpOptions& options,
                Handler& handler, std::function<void(Connection*)> ended)
      : socket_(std::move(socket)),
        deadline_(socket_.get_executor()),
        quiet_(socket_.get_executor()),
        options_(options),
        handler_(handler),
        ended_(std::move(ended)),
        outbox_(options.stream_bytes) {
    error_code ignored;
    const auto end = socket_.remote_endpoint(ignored);
    peer_ = end.address().to_string(ignored);
    socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
  }

  void Begin() override { NextRequest(); }
  void Close(bool now) override;

  asio::any_io_executor executor() { return socket_.get_executor(); }

  // What a Stream asks for; `answer` counts them, so that an old one's calls
  // have no effect.
  void Watch(int answer, ReplyWatch watch);
  void Whole(int answer, HttpAnswer whole);
  void Start(int answer, int status, const std::string& content_type,
             std::vector<HttpHeader> headers);
  void Send(int answer, std::string bytes);
  void End(int answer);
  void Drop(int answer);

 private:
  enum class Phase { kIdle, kHead, kBody, kAnswer, kClosed };

  // Reading.
  void NextRequest();
  void Read();
  void OnRead(const error_code& error, std::size_t n);
  void Advance();
  bool Admit();
  void HandOver();
  void Refuse(const HttpProblem& problem);

  // Writing.
  void Answer(const HttpAnswer& answer, bool keep_alive);
  void Write();
  void WriteSome();
  void OnWritten(const error_code& error, std::size_t n);
  void Finish();
  void WatchFull();

  // Time.
  void Expire(Alarm::Clock::time_point at);
  void ExpireIn(int ms) {
    Expire(Alarm::Clock::now() + std::chrono::milliseconds(ms));
  }
  void OnDeadline();
  void Hush(int ms);

  void Gone();
  void Shut();
  bool Current(int answer) const {
    return phase_ == Phase::kAnswer && answer == answer_;
  }

  asio::ip::tcp::socket socket_;
  Alarm deadline_, quiet_;
  const HttpOptions& options_;
  Handler& handler_;
  std::function<void(Connection*)> ended_;
  std::string peer_;

  Phase phase_ = Phase::kIdle;
  std::unique_ptr<RequestParser> parser_;
  std::array<char, 16384> buffer_;
  std::string inbox_;  // read, not taken by the parser
  bool reading_ = false, ended_input_ = false;
  Alarm::Clock::time_point body_since_;
  std::size_t body_bytes_ = 0;

  int answer_ = 0;
  ReplyWatch watch_;
  bool head_only_ = false, keep_alive_ = false, closing_ = false;
  bool started_ = false, over_ = false, lingering_ = false;
  BodyEnd end_ = BodyEnd::kLength;
  Outbox outbox_;
};

// What a handler answers one request with.
std::shared_ptr<Reply> MakeReply(std::shared_ptr<TcpConnection> connection,
                                 int answer);

}  // namespace hearth::serve
