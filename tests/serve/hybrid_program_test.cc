// hearth serve with a model that carries states: the next turn, the next start
// and the start after a kill go on from where a message ended.
#include <gtest/gtest.h>

#include <fstream>

#include "serve_testing.h"

namespace hearth {
namespace {

const std::string kHybrid = std::string(HEARTH_TEST_DATA) + "/models/hf/lfm2";
// Tokens of the next answer's opening, and the last token, which is always
// computed.
constexpr int kOpening = 12;

class HybridProgram : public ::testing::Test {
 protected:
  HybridProgram() {
    std::ofstream(template_)
        << "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}"
           "<|im_end|>\n{% endfor %}"
           "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";
  }
  std::vector<std::string> Arguments() const {
    return {kHybrid, "--template", template_, "--context", "512"};
  }
  static TestJson Turn(const TestJson& messages) {
    TestJson body = TestJson::parse(R"({"max_tokens": 12, "temperature": 1,
        "seed": 5, "response_format": {"type": "json_schema", "json_schema":
        {"name": "x", "schema": {"type": "string",
        "pattern": "^[a-z]{20,30}$"}}}})");
    body["messages"] = messages;
    return body;
  }
  static TestJson Messages(const std::string& user) {
    return TestJson::array(
        {{{"role", "system"}, {"content", std::string(100, 'b')}},
         {{"role", "user"}, {"content", user}}});
  }
  struct Got {
    int prompt = 0, reused = 0;
    std::string tier, text;
  };
  static Got Ask(const ServeProgram& server, const TestJson& messages) {
    const HttpGot got = server.Post("/v1/chat/completions", Turn(messages));
    EXPECT_EQ(got.status, 200) << got.body;
    if (got.status != 200) return {};
    return {std::stoi(got.header("x-hearth-prompt")),
            std::stoi(got.header("x-hearth-reused")),
            got.header("x-hearth-tier"),
            got.json()["choices"][0]["message"]["content"].get<std::string>()};
  }
  static void WaitForWriter(const ServeProgram& server) {
    while (server.Get("/metrics").body.find("hearth_save_queue_bytes 0") ==
           std::string::npos) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }

  TempDir home_;
  const std::string template_ = home_.path() + "/chatml.jinja";
};

TEST_F(HybridProgram, TurnsStartsAndKillsCostNoPrompt) {
  TestJson messages = Messages(std::string(90, 'a'));
  Got first;
  {
    ServeProgram server(home_, Arguments());
    first = Ask(server, messages);
    EXPECT_EQ(first.reused, 0);
    // Another conversation with the same system prompt.
    const Got other = Ask(server, Messages("else"));
    EXPECT_GE(other.reused, 100);
    EXPECT_EQ(other.tier, "memory");
    WaitForWriter(server);
    EXPECT_EQ(server.End(SIGKILL), 128 + SIGKILL);
  }
  {
    ServeProgram server(home_, Arguments());
    const Got again = Ask(server, messages);
    EXPECT_GE(again.reused, first.prompt - kOpening);
    EXPECT_EQ(again.tier, "disk");
    EXPECT_EQ(again.text, first.text);
    messages.push_back({{"role", "assistant"}, {"content", first.text}});
    messages.push_back({{"role", "user"}, {"content", "more"}});
    const Got second = Ask(server, messages);
    EXPECT_GE(second.reused, first.prompt - kOpening);
    EXPECT_EQ(second.tier, "memory");
    EXPECT_NE(server.Get("/metrics").body.find("hearth_state_bytes"),
              std::string::npos);
    EXPECT_EQ(server.End(SIGTERM), 0) << server.said();
  }
  // At its end a server writes the newest states, whatever stands before them.
  ServeProgram server(home_, Arguments());
  const Got second = Ask(server, messages);
  EXPECT_GE(second.reused, second.prompt - kOpening);
  EXPECT_EQ(second.tier, "disk");
}

}  // namespace
}  // namespace hearth
