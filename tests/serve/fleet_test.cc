// Two servers that share a Redis: a conversation goes on at the other one, and
// when one of the two, or Redis, is gone.
#include <gtest/gtest.h>

#include "serve_testing.h"
#include "store/remote/redis_server_testing.h"

namespace hearth {
namespace {

class FleetTest : public ::testing::Test {
 protected:
  std::unique_ptr<ServeProgram> Server(const TempDir& home) const {
    return std::make_unique<ServeProgram>(
        home,
        std::vector<std::string>{
            std::string(HEARTH_TEST_DATA) + "/models/hf/qwen2", "--template",
            std::string(HEARTH_TEST_DATA) +
                "/chat/templates/Qwen-Qwen3-0.6B.jinja",
            "--context", "4096", "--cache-always", "--cache-remote",
            redis_.text(), "--cache-remote-trusted", "--cache-remote-deadline",
            "60000"});
  }
  // The next turn of the conversation there: tokens of the prompt, and reused.
  struct Turn {
    int prompt = 0, reused = 0;
    std::string tier;
  };
  Turn Ask(const ServeProgram& server, const std::string& text) {
    messages_.push_back({{"role", "user"}, {"content", text}});
    const HttpGot got = server.Post(
        "/v1/chat/completions",
        {{"messages", messages_}, {"max_tokens", 4}, {"temperature", 0}});
    EXPECT_EQ(got.status, 200) << got.body;
    messages_.push_back(got.json()["choices"][0]["message"]);
    return {std::stoi(got.header("x-hearth-prompt")),
            std::stoi(got.header("x-hearth-reused")),
            got.header("x-hearth-tier")};
  }
  // What is sent to Redis is sent off the critical path: until it is there.
  void AwaitUploads(int n_blocks) const {
    const std::string command = "test $(redis-cli -p " +
                                std::to_string(redis_.url().port) +
                                " dbsize) -ge " + std::to_string(n_blocks);
    for (int i = 0; i < 2000 && std::system(command.c_str()) != 0; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }

  RedisServer redis_;
  TestJson messages_ = TestJson::array();
};

TEST_F(FleetTest, AConversationGoesOnWhoeverIsGone) {
  if (!redis_.WaitUntilUp(redis_.url())) GTEST_SKIP() << "no redis-server";
  std::string story;
  for (int i = 0; i < 60; ++i) story += "The dog saw a red house. ";
  TempDir home_a, home_b;
  auto a = Server(home_a);
  const Turn first = Ask(*a, story);
  EXPECT_EQ(first.reused, 0);
  AwaitUploads(first.prompt / 64);

  auto b = Server(home_b);
  const Turn second = Ask(*b, "And then?");
  EXPECT_EQ(second.tier, "remote");
  EXPECT_GE(second.reused, first.prompt / 64 * 64);

  a->End(SIGKILL);
  const Turn third = Ask(*b, "And then?");
  EXPECT_GE(third.reused, second.prompt / 64 * 64);

  // What B has fetched is its own.
  redis_.Stop();
  b->End(SIGKILL);
  b = Server(home_b);
  const Turn fourth = Ask(*b, "And then?");
  EXPECT_EQ(fourth.tier, "disk");
  EXPECT_GE(fourth.reused, second.prompt / 64 * 64);
}

}  // namespace
}  // namespace hearth
