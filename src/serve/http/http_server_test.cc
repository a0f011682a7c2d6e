#include "serve/http/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <mutex>
#include <thread>

#include "testing/raw_client.h"

namespace hearth::serve {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// Answers what its path says.
class TestHandler final : public Handler {
 public:
  std::optional<HttpAnswer> Refuse(const HttpRequest& head) override {
    if (head.path != "/forbidden") return std::nullopt;
    return HttpAnswer{403, "text/plain", "no", {}};
  }
  HttpAnswer Problem(const HttpRequest&, const HttpProblem& problem) override {
    return {problem.status, "text/plain", problem.message, {}};
  }
  void Handle(HttpRequest request, std::shared_ptr<Reply> reply) override {
    if (request.path == "/drop") return;
    if (request.path == "/stream") return Stream(std::move(reply));
    HttpAnswer answer{
        200, "text/plain", request.method + " " + request.body, {}};
    reply->Whole(std::move(answer));
  }

  // The newest stream, which a test goes on with.
  std::shared_ptr<Reply> TakeStream() {
    const std::lock_guard lock(mutex_);
    return std::move(stream_);
  }
  std::atomic<int> n_gone{0}, n_quiet{0}, n_full{0}, n_room{0};

 private:
  void Stream(std::shared_ptr<Reply> reply) {
    ReplyWatch watch;
    watch.gone = [this] { ++n_gone; };
    watch.quiet = [this] { ++n_quiet; };
    watch.full = [this](bool full) { ++(full ? n_full : n_room); };
    watch.quiet_first_ms = watch.quiet_every_ms = 30;
    reply->Watch(std::move(watch));
    reply->Start(200, "text/event-stream", {{"X-Bad", "a\r\nInjected: b"}});
    const std::lock_guard lock(mutex_);
    stream_ = std::move(reply);
  }

  std::mutex mutex_;
  std::shared_ptr<Reply> stream_;
};

class HttpServerTest : public ::testing::Test {
 protected:
  void Start(HttpOptions options = {}) {
    options.port = 0;
    auto server = HttpServer::Listen(options, handler_);
    ASSERT_TRUE(server.ok()) << server.error().message;
    server_ = *std::move(server);
    thread_ = std::thread([this] { server_->Run(); });
  }
  void TearDown() override {
    if (server_ == nullptr) return;
    server_->Stop();
    thread_.join();
  }
  template <typename Condition>
  bool Soon(Condition condition) {
    for (int i = 0; i < 4000; ++i) {
      if (condition()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }
  std::shared_ptr<Reply> StreamFor(RawClient& client) {
    client.Send("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_TRUE(client.Until("\r\n\r\n"));
    std::shared_ptr<Reply> stream;
    EXPECT_TRUE(Soon([&] {
      stream = handler_.TakeStream();
      return stream != nullptr;
    }));
    return stream;
  }

  TestHandler handler_;
  std::unique_ptr<HttpServer> server_;
  std::thread thread_;
};

constexpr const char* kGet = "GET /a HTTP/1.1\r\nHost: a\r\n\r\n";

TEST_F(HttpServerTest, KeepsTheConnectionAndAnswersInOrder) {
  Start();
  RawClient client(server_->port());
  const std::string post =
      "POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc";
  client.Send(kGet + post + kGet);  // sent ahead, without waiting
  EXPECT_EQ(client.Read().body, "GET ");
  EXPECT_EQ(client.Read().body, "POST abc");
  EXPECT_EQ(client.Read().body, "GET ");
  client.Send("HEAD /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  const auto head = client.Read(/*no_body=*/true);
  EXPECT_EQ(RawClient::Header(head, "Content-Length"), "5");
  EXPECT_EQ(client.ToEnd(), "");
  EXPECT_TRUE(client.ended());
}

TEST_F(HttpServerTest, AnswersOnBothLoopbackAddresses) {
  Start();
  for (const std::string& address : server_->addresses()) {
    RawClient client(server_->port(), address == "::1");
    client.Send(kGet);
    EXPECT_EQ(client.Read().status, 200) << address;
  }
}

TEST_F(HttpServerTest, BytesOneByOneAreTheSameRequest) {
  Start();
  RawClient client(server_->port());
  const std::string post =
      "POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc";
  for (const char byte : post) client.Send({&byte, 1});
  EXPECT_EQ(client.Read().body, "POST abc");
}

TEST_F(HttpServerTest, AnOldClientReadsToTheEnd) {
  Start();
  RawClient client(server_->port());
  client.Send("GET /stream HTTP/1.0\r\n\r\n");
  std::shared_ptr<Reply> stream;
  ASSERT_TRUE(
      Soon([&] { return (stream = handler_.TakeStream()) != nullptr; }));
  stream->Send("one");
  stream->Send("two");
  stream->End();
  const auto answer = client.Read();
  EXPECT_EQ(answer.body, "onetwo");
  EXPECT_EQ(RawClient::Header(answer, "Transfer-Encoding"), "");
}

TEST_F(HttpServerTest, StreamsInChunksAndGoesOn) {
  Start();
  RawClient client(server_->port());
  const auto stream = StreamFor(client);
  stream->Send("data: 1\n\n");
  EXPECT_TRUE(client.Until("data: 1"));
  stream->Send("data: 2\n\n");
  stream->End();
  const auto answer = client.Read();
  EXPECT_EQ(answer.body, "data: 1\n\ndata: 2\n\n");
  // A value cannot become a header of its own.
  EXPECT_EQ(RawClient::Header(answer, "Injected"), "");
  client.Send(kGet);
  EXPECT_EQ(client.Read().status, 200);
  EXPECT_EQ(handler_.n_gone, 0);
  EXPECT_EQ(handler_.n_full, 0);
}

TEST_F(HttpServerTest, SilenceIsTold) {
  Start();
  RawClient client(server_->port());
  const auto stream = StreamFor(client);
  EXPECT_TRUE(Soon([&] { return handler_.n_quiet >= 3; }));
  stream->End();
}

TEST_F(HttpServerTest, AClientThatLeavesIsGone) {
  Start();
  {
    RawClient client(server_->port());
    const auto stream = StreamFor(client);
    client.Close();
    EXPECT_TRUE(Soon([&] { return handler_.n_gone == 1; }));
    stream->Send("into the void");
    stream->End();
  }
  {
    RawClient client(server_->port());
    const auto stream = StreamFor(client);
    client.Reset();
    EXPECT_TRUE(Soon([&] { return handler_.n_gone == 2; }));
  }
  {
    // Who sends no more has left: nothing tells it from a closed connection.
    RawClient client(server_->port());
    const auto stream = StreamFor(client);
    client.EndSending();
    EXPECT_TRUE(Soon([&] { return handler_.n_gone == 3; }));
  }
  // The answers are let go of.
  EXPECT_TRUE(Soon([&] { return server_->n_connections() == 0; }));
}

TEST_F(HttpServerTest, AnAnswerThatIsThereReachesAHalfClosedClient) {
  Start();
  RawClient client(server_->port());
  client.Send("GET /a HTTP/1.1\r\nHost: a\r\n\r\n");
  client.EndSending();
  EXPECT_THAT(client.ToEnd(), StartsWith("HTTP/1.1 200"));
}

TEST_F(HttpServerTest, ADroppedAnswerClosesTheConnection) {
  Start();
  RawClient client(server_->port());
  client.Send("GET /drop HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(client.ToEnd(), "");
  EXPECT_TRUE(client.ended());
}

TEST_F(HttpServerTest, WhoDoesNotReadIsWaitedForAndThenGone) {
  HttpOptions options;
  options.stream_bytes = 1 << 16;
  options.times.write_ms = 400;
  Start(options);
  RawClient client(server_->port());
  const auto stream = StreamFor(client);
  // More than the system's own buffers take.
  const std::string much(std::size_t{1} << 20, 'x');
  for (int i = 0; i < 24; ++i) stream->Send(much);
  EXPECT_TRUE(Soon([&] { return handler_.n_full >= 1; }));
  EXPECT_TRUE(Soon([&] { return handler_.n_gone == 1; }));
}

TEST_F(HttpServerTest, AReaderThatGoesOnMakesRoom) {
  HttpOptions options;
  options.stream_bytes = 1 << 16;
  Start(options);
  RawClient client(server_->port());
  const auto stream = StreamFor(client);
  const std::string much(std::size_t{1} << 20, 'x');
  for (int i = 0; i < 24; ++i) stream->Send(much);
  EXPECT_TRUE(Soon([&] { return handler_.n_full >= 1; }));
  stream->End();
  EXPECT_EQ(client.Read().body.size(), 24 * much.size());
  EXPECT_EQ(handler_.n_room, handler_.n_full);
  EXPECT_EQ(handler_.n_gone, 0);
}

TEST_F(HttpServerTest, SlowHeadsAndBodiesEnd) {
  HttpOptions options;
  options.times.head_ms = options.times.body_ms = 150;
  options.times.idle_ms = 300;
  options.times.body_bytes_per_s = 1'000'000;
  Start(options);
  RawClient head(server_->port());
  head.Send("GET / HT");
  EXPECT_THAT(head.ToEnd(), StartsWith("HTTP/1.1 408"));
  RawClient body(server_->port());
  body.Send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc");
  EXPECT_THAT(body.ToEnd(), StartsWith("HTTP/1.1 408"));
  RawClient idle(server_->port());
  EXPECT_EQ(idle.ToEnd(), "");
  EXPECT_TRUE(idle.ended());
}

TEST_F(HttpServerTest, RefusesBeforeTheBodyComes) {
  Start();
  RawClient client(server_->port());
  client.Send(
      "POST /forbidden HTTP/1.1\r\nHost: a\r\nContent-Length: 900\r\n\r\n");
  const auto answer = client.Read();
  EXPECT_EQ(answer.status, 403);
  EXPECT_EQ(RawClient::Header(answer, "Connection"), "close");
  // Without a body the connection is as good as before.
  RawClient other(server_->port());
  other.Send("GET /forbidden HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(other.Read().status, 403);
  other.Send(kGet);
  EXPECT_EQ(other.Read().status, 200);
}

TEST_F(HttpServerTest, RefusalsOnAKeptConnectionArriveToo) {
  Start();
  RawClient client(server_->port());
  const std::string forbidden = "GET /forbidden HTTP/1.1\r\nHost: a\r\n\r\n";
  for (int i = 0; i < 3; ++i) {
    client.Send(kGet);
    EXPECT_EQ(client.Read().status, 200);
    client.Send(forbidden);
    EXPECT_EQ(client.Read().status, 403);
  }
}

TEST_F(HttpServerTest, ALargeBodyIsRefusedInWordsThatArrive) {
  HttpOptions options;
  options.limits.body_bytes = 1000;
  Start(options);
  RawClient client(server_->port());
  client.Send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2000000\r\n\r\n" +
              std::string(2'000'000, 'x'));
  EXPECT_THAT(client.ToEnd(), StartsWith("HTTP/1.1 413"));
}

TEST_F(HttpServerTest, SaysContinueToWhoWaitsForIt) {
  Start();
  RawClient client(server_->port());
  client.Send(
      "POST /b HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n"
      "Content-Length: 3\r\n\r\n");
  EXPECT_EQ(client.Read().status, 100);
  client.Send("abc");
  EXPECT_EQ(client.Read().body, "POST abc");
}

TEST_F(HttpServerTest, OneConnectionTooManyIsTold) {
  Start();
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 256; ++i) {
    clients.push_back(std::make_unique<RawClient>(server_->port()));
    ASSERT_TRUE(clients.back()->connected());
  }
  ASSERT_TRUE(Soon([&] { return server_->n_connections() == 256; }));
  RawClient late(server_->port());
  EXPECT_THAT(late.ToEnd(), StartsWith("HTTP/1.1 503"));
  clients.front()->Send(kGet);
  EXPECT_EQ(clients.front()->Read().status, 200);
  clients.pop_back();
  ASSERT_TRUE(Soon([&] { return server_->n_connections() == 255; }));
  RawClient next(server_->port());
  next.Send(kGet);
  EXPECT_EQ(next.Read().status, 200);
}

TEST_F(HttpServerTest, DrainingEndsAfterTheAnswer) {
  Start();
  RawClient idle(server_->port()), busy(server_->port());
  const auto stream = StreamFor(busy);
  server_->Drain();
  EXPECT_EQ(idle.ToEnd(), "");
  stream->Send("last");
  stream->End();
  EXPECT_EQ(busy.Read().body, "last");
  EXPECT_TRUE(Soon([&] { return server_->n_connections() == 0; }));
  EXPECT_FALSE(RawClient(server_->port()).connected());
}

TEST_F(HttpServerTest, ATakenPortIsNamed) {
  Start();
  HttpOptions options;
  options.port = server_->port();
  const auto second = HttpServer::Listen(options, handler_);
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(second.error().message,
              HasSubstr("port " + std::to_string(options.port)));
}

}  // namespace
}  // namespace hearth::serve
