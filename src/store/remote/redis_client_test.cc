#include "store/remote/redis_client.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <functional>

#include "store/remote/redis_server_testing.h"

namespace hearth {
namespace {

TEST(RemoteUrl, PartsAreRead) {
  const auto url =
      ParseRemoteUrl("rediss://me:s%40crA%3at@host.example:7000/3");
  ASSERT_TRUE(url.ok()) << url.error().message;
  EXPECT_TRUE(url->tls);
  EXPECT_EQ(url->user, "me");
  EXPECT_EQ(url->password, "s@crA:t");
  EXPECT_EQ(url->host, "host.example");
  EXPECT_EQ(url->port, 7000);
  EXPECT_EQ(url->database, 3);
  EXPECT_EQ(url->Name(), "host.example:7000/3");
  const auto plain = ParseRemoteUrl("redis://[::1]");
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ(plain->host, "::1");
  EXPECT_EQ(plain->port, 6379);
  EXPECT_FALSE(plain->tls);
  EXPECT_EQ(ParseRemoteUrl("redis://:pw@h/")->password, "pw");
}

TEST(RemoteUrl, WhatMakesNoSenseIsRefusedAndNoPasswordRepeated) {
  for (const char* text :
       {"", "http://h", "redis://", "redis://h:0", "redis://h:65536",
        "redis://h:x", "redis://h/x", "redis://h/-1", "redis://h/99999",
        "redis://secret@h", "redis://:secret%4@h", "redis://:secret%zz@h",
        "redis://:secret@", "redis://[::1", "redis://[::1]x"}) {
    const auto url = ParseRemoteUrl(text);
    ASSERT_FALSE(url.ok()) << text;
    EXPECT_EQ(url.error().code, Code::kInvalidArgument);
    EXPECT_EQ(url.error().message.find("secret"), std::string::npos) << text;
  }
}

// A server that says what the test wants.
class FakeServer {
 public:
  explicit FakeServer(std::function<void(int fd)> talk)
      : listening_(Listen(port_)), thread_([this, talk = std::move(talk)] {
          const int fd = ::accept(listening_, nullptr, nullptr);
          char request[4096];
          if (fd >= 0 && ::recv(fd, request, sizeof(request), 0) > 0) talk(fd);
          if (fd >= 0) ::close(fd);
        }) {}
  ~FakeServer() {
    ::shutdown(listening_, SHUT_RDWR);
    thread_.join();
    ::close(listening_);
  }
  RemoteUrl url() const { return {.host = "127.0.0.1", .port = port_}; }

 private:
  int port_ = 0;
  int listening_;
  std::thread thread_;
};

void Say(int fd, const std::string& text) {
  (void)::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
}

// Calls `meanwhile` every 5 ms until the other side closes; after a minute it
// is closed on.
void UntilHungUp(int fd, const std::function<void()>& meanwhile) {
  const Deadline deadline = InAMinute();
  struct pollfd entry = {fd, POLLRDHUP, 0};
  while (::poll(&entry, 1, 5) == 0 &&
         std::chrono::steady_clock::now() < deadline) {
    meanwhile();
  }
}

// The answer to GET of one key, 1,000 bytes at most.
Result<std::vector<std::optional<std::string>>> GetFrom(
    const std::function<void(int)>& talk, Deadline deadline = InAMinute()) {
  const FakeServer server(talk);
  auto servers = RedisServers::Connect(server.url(), InAMinute()).value();
  const std::string key = "k";
  return servers->Get(std::span(&key, 1), 1000, deadline);
}

TEST(RedisClient, ReadsAnswersInAnyPieces) {
  const auto value = GetFrom([](int fd) {
    for (const char c : std::string("$5\r\nhello\r\n")) {
      Say(fd, std::string(1, c));
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  ASSERT_TRUE(value.ok()) << value.error().message;
  EXPECT_EQ(value->front(), "hello");
  EXPECT_EQ(GetFrom([](int fd) { Say(fd, "$-1\r\n"); })->front(), std::nullopt);
}

TEST(RedisClient, HostileAnswersAreErrors) {
  for (const std::string text :
       {"hello\r\n", "$5\r\nhel", "-ERR no\r\n", ":7\r\n", "*1\r\n$1\r\nx\r\n",
        "*2147483647\r\n", "$99999999999999999999\r\n", "$-7\r\n", "\r\n\r\n",
        ""}) {
    const auto value = GetFrom([&](int fd) { Say(fd, text); });
    EXPECT_FALSE(value.ok()) << text;
  }
  // A value larger than was asked for is not waited for.
  const auto large = GetFrom([](int fd) {
    Say(fd, "$1000000000\r\n" + std::string(1 << 20, 'x'));
    UntilHungUp(fd, [] {});
  });
  ASSERT_FALSE(large.ok());
  EXPECT_EQ(large.error().code, Code::kCorrupt) << large.error().message;
}

TEST(RedisClient, AClusterThatIsDownIsSaidSo) {
  const auto value =
      GetFrom([](int fd) { Say(fd, "-CLUSTERDOWN Hash slot not served\r\n"); });
  ASSERT_FALSE(value.ok());
  EXPECT_NE(value.error().message.find("cluster is down"), std::string::npos);
}

TEST(RedisClient, ARedirectionToNobodyIsNoValueAndNamesTheNode) {
  const FakeServer server([](int fd) {
    // The key's node cannot be reached, and CLUSTER NODES is not understood.
    Say(fd, "-MOVED 7629 127.0.0.1:1\r\n-ERR no such command\r\n");
    UntilHungUp(fd, [] {});
  });
  auto servers = RedisServers::Connect(server.url(), InAMinute()).value();
  const std::string key = "k";
  const auto value = servers->Get(std::span(&key, 1), 1000, InAMinute());
  EXPECT_FALSE(value.ok() && value->front().has_value());
  EXPECT_NE(servers->trouble().find("127.0.0.1:1"), std::string::npos)
      << servers->trouble();
}

TEST(RedisClient, SilenceAndDribbleCostTheDeadline) {
  for (const bool dribble : {false, true}) {
    const auto value = GetFrom(
        [&](int fd) {
          Say(fd, "$900\r\n");
          UntilHungUp(fd, [&] {
            if (dribble) Say(fd, "x");
          });
        },
        In(60));
    ASSERT_FALSE(value.ok());
    EXPECT_EQ(value.error().code, Code::kCancelled) << value.error().message;
  }
}

TEST(RedisClient, NobodyThereIsAnError) {
  int port = 0;
  ::close(Listen(port));
  const auto client =
      RedisServers::Connect({.host = "127.0.0.1", .port = port}, InAMinute());
  EXPECT_EQ(client.error().code, Code::kIo);
  EXPECT_FALSE(
      RedisServers::Connect({.host = "no.such.host.invalid"}, In(300)).ok());
}

TEST(RedisClient, TalksToARealServer) {
  RedisServer server({"--requirepass", "a secret"});
  RemoteUrl url = server.url();
  url.password = "a secret";
  url.database = 2;
  if (!server.WaitUntilUp(url)) GTEST_SKIP() << "no redis-server here";
  auto client = RedisServers::Connect(url, InAMinute()).value();
  const std::string binary("\0\r\n$5\r\n\xff", 9);
  ASSERT_TRUE(client->Set("a", AsBytes(binary), InAMinute()).ok());
  EXPECT_TRUE(*client->Exists("a", InAMinute()));
  EXPECT_FALSE(*client->Exists("b", InAMinute()));
  const std::vector<std::string> keys = {"b", "a"};
  const auto values = client->Get(keys, 1000, InAMinute());
  ASSERT_TRUE(values.ok());
  EXPECT_EQ(values->front(), std::nullopt);
  EXPECT_EQ(values->back(), binary);
  url.password = "wrong";
  EXPECT_NE(
      RedisServers::Connect(url, InAMinute()).error().message.find("WRONGPASS"),
      std::string::npos);
}

}  // namespace
}  // namespace hearth
