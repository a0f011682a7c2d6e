// hearth serve as its users run it: every dialect, errors, the end, and what is
// left after a kill.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "serve_testing.h"

namespace hearth {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string kModel = std::string(HEARTH_TEST_DATA) + "/models/hf/qwen2";
const std::string kTemplate =
    std::string(HEARTH_TEST_DATA) + "/chat/templates/Qwen-Qwen3-0.6B.jinja";

std::vector<std::string> WithTemplate(std::vector<std::string> more = {}) {
  more.insert(more.begin(), {kModel, "--template", kTemplate});
  return more;
}

TestJson Said(const std::string& text) {
  return TestJson::array({{{"role", "user"}, {"content", text}}});
}

TestJson Object(const std::string& text) { return TestJson::parse(text); }

TestJson With(const std::string& fields, const TestJson& messages) {
  TestJson body = Object(fields);
  body["messages"] = messages;
  return body;
}

class ServeProgramTest : public ::testing::Test {
 protected:
  // One for all tests that only ask.
  static void SetUpTestSuite() {
    home_ = new TempDir;
    server_ = new ServeProgram(*home_, WithTemplate({"--context", "2048"}));
  }
  static void TearDownTestSuite() {
    delete server_;
    delete home_;
  }
  static inline TempDir* home_ = nullptr;
  static inline ServeProgram* server_ = nullptr;
};

TEST_F(ServeProgramTest, ChatIsTheSameWholeAndStreamed) {
  TestJson body = With(R"({"max_tokens": 12, "temperature": 0})", Said("One"));
  const HttpGot whole = server_->Post("/v1/chat/completions", body);
  ASSERT_EQ(whole.status, 200) << whole.body;
  const TestJson answer = whole.json();
  EXPECT_EQ(answer["usage"]["completion_tokens"], 12);
  EXPECT_EQ(answer["choices"][0]["finish_reason"], "length");
  EXPECT_NE(whole.header("x-hearth-prompt"), "");

  body["stream"] = true;
  body["stream_options"] = {{"include_usage", true}};
  const HttpGot streamed = server_->Post("/v1/chat/completions", body);
  ASSERT_EQ(streamed.status, 200) << streamed.body;
  EXPECT_EQ(streamed.header("content-type").substr(0, 17), "text/event-stream");
  EXPECT_TRUE(streamed.body.ends_with("data: [DONE]\n\n")) << streamed.body;
  std::string content, reasoning;
  TestJson usage;
  for (const TestJson& event : EventsOf(streamed.body)) {
    if (event.contains("usage") && event["usage"].is_object()) {
      usage = event["usage"];
    }
    for (const TestJson& choice : event["choices"]) {
      const TestJson& delta = choice["delta"];
      if (delta.contains("content") && delta["content"].is_string()) {
        content += delta["content"].get<std::string>();
      }
    }
  }
  EXPECT_EQ(content, answer["choices"][0]["message"]["content"]);
  EXPECT_EQ(usage["completion_tokens"], 12);
}

TEST_F(ServeProgramTest, EveryDialectAnswersWholeAndStreamed) {
  struct Way {
    const char *path, *fields, *text_at, *end;
  };
  const std::vector<Way> ways = {
      {"/v1/completions", R"({"prompt": "One", "max_tokens": 5})",
       "/choices/0/text", "data: [DONE]"},
      {"/v1/responses", R"({"input": "One", "max_output_tokens": 5})",
       "/output", "response."},
      {"/v1/messages",
       R"({"max_tokens": 5, "messages": [{"role": "user", "content": "One"}]})",
       "/content", "event: message_stop"},
      {"/api/chat",
       R"({"messages": [{"role": "user", "content": "One"}],
           "options": {"num_predict": 5}})",
       "/message/content", "\"done\":true"},
      {"/api/generate", R"({"prompt": "One", "options": {"num_predict": 5}})",
       "/response", "\"done\":true"},
      {"/completion", R"({"prompt": "One", "n_predict": 5})", "/content",
       "\"stop\":true"},
  };
  for (const Way& way : ways) {
    TestJson body = Object(way.fields);
    body["stream"] = false;
    const HttpGot whole = server_->Post(way.path, body);
    ASSERT_EQ(whole.status, 200) << way.path << whole.body;
    EXPECT_TRUE(whole.json().contains(TestJson::json_pointer(way.text_at)))
        << whole.body;
    body["stream"] = true;
    const HttpGot streamed = server_->Post(way.path, body);
    ASSERT_EQ(streamed.status, 200) << way.path << streamed.body;
    EXPECT_THAT(streamed.body, HasSubstr(way.end)) << way.path;
    EXPECT_GT(EventsOf(streamed.body).size(), 1u) << way.path;
  }
}

constexpr const char* kPick = R"([{"type": "function", "function": {
  "name": "pick", "parameters": {"type": "object", "properties": {
  "n": {"type": "integer", "minimum": 0, "maximum": 9}},
  "required": ["n"]}}}])";

TEST_F(ServeProgramTest, ARequiredCallIsMadeAndItsResultIsTaken) {
  TestJson messages = Said("Pick a number");
  TestJson body = With(R"({"max_tokens": 300, "temperature": 0, "seed": 1,
      "tool_choice": "required", "parallel_tool_calls": false,
      "chat_template_kwargs": {"enable_thinking": false}})",
                       messages);
  body["tools"] = Object(kPick);
  const HttpGot called = server_->Post("/v1/chat/completions", body);
  ASSERT_EQ(called.status, 200) << called.body;
  const TestJson choice = called.json()["choices"][0];
  ASSERT_EQ(choice["finish_reason"], "tool_calls") << called.body;
  const TestJson call = choice["message"]["tool_calls"][0];
  EXPECT_EQ(call["function"]["name"], "pick");
  const auto arguments =
      Object(call["function"]["arguments"].get<std::string>());
  EXPECT_TRUE(arguments["n"].is_number_integer()) << arguments;

  messages.push_back(choice["message"]);
  messages.push_back(
      {{"role", "tool"}, {"tool_call_id", call["id"]}, {"content", "7"}});
  body["messages"] = messages;
  body["tool_choice"] = "none";
  body["max_tokens"] = 4;
  const HttpGot after = server_->Post("/v1/chat/completions", body);
  ASSERT_EQ(after.status, 200) << after.body;
  EXPECT_GT(std::stoi(after.header("x-hearth-reused")), 0);
}

TEST_F(ServeProgramTest, AnAnswerHoldsToItsSchema) {
  TestJson body = With(R"({"max_tokens": 200, "temperature": 0,
      "chat_template_kwargs": {"enable_thinking": false},
      "response_format": {"type": "json_schema", "json_schema": {"name": "x",
      "schema": {"type": "object", "properties": {"who": {"enum": ["a", "b"]}},
      "required": ["who"], "additionalProperties": false}}}})",
                       Said("Who?"));
  const HttpGot got = server_->Post("/v1/chat/completions", body);
  ASSERT_EQ(got.status, 200) << got.body;
  const TestJson message = got.json()["choices"][0]["message"];
  const TestJson object =
      TestJson::parse(message["content"].get<std::string>(), nullptr, false);
  ASSERT_TRUE(object.is_object()) << got.body;
  EXPECT_TRUE(object["who"] == "a" || object["who"] == "b") << got.body;
}

TEST_F(ServeProgramTest, SeveralAnswersStopsAndProbabilities) {
  TestJson body = With(R"({"max_tokens": 6, "n": 2, "seed": 3,
      "temperature": 1, "logprobs": true, "top_logprobs": 2})",
                       Said("Two"));
  const HttpGot two = server_->Post("/v1/chat/completions", body);
  ASSERT_EQ(two.status, 200) << two.body;
  const TestJson choices = two.json()["choices"];
  ASSERT_EQ(choices.size(), 2u);
  EXPECT_NE(choices[0]["message"]["content"], choices[1]["message"]["content"]);
  EXPECT_EQ(choices[0]["logprobs"]["content"][0]["top_logprobs"].size(), 2u)
      << two.body;

  TestJson plain = Object(R"({"prompt": "One", "max_tokens": 30,
                              "temperature": 0})");
  const TestJson all = server_->Post("/v1/completions", plain).json();
  const auto text = all["choices"][0]["text"].get<std::string>();
  // An ASCII letter of the middle: the answer ends before it.
  const std::size_t at = text.find_first_of(
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", text.size() / 3);
  ASSERT_NE(at, std::string::npos) << text;
  plain["stop"] = std::string(1, text[at]);
  const TestJson stopped = server_->Post("/v1/completions", plain).json();
  EXPECT_EQ(stopped["choices"][0]["finish_reason"], "stop");
  EXPECT_EQ(stopped["choices"][0]["text"], text.substr(0, text.find(text[at])));
}

TEST_F(ServeProgramTest, TellsOfItself) {
  EXPECT_EQ(server_->Get("/health").json()["status"], "ok");
  EXPECT_EQ(server_->Get("/v1/models").json()["data"][0]["id"], "qwen2");
  EXPECT_THAT(server_->Get("/metrics").body, HasSubstr("hearth_running "));
  EXPECT_THAT(server_->Get("/").body, HasSubstr("<html"));
  for (const char* path : {"/api/tags", "/api/version", "/api/ps", "/props",
                           "/slots", "/hearth/v1/cache"}) {
    EXPECT_EQ(server_->Get(path).status, 200) << path;
  }
  const HttpGot counted =
      server_->Post("/v1/messages/count_tokens", With("{}", Said("One two")));
  ASSERT_EQ(counted.status, 200) << counted.body;
  const HttpGot answered = server_->Post(
      "/v1/messages", With(R"({"max_tokens": 1})", Said("One two")));
  EXPECT_EQ(counted.json()["input_tokens"].dump(),
            answered.header("x-hearth-prompt"));
}

TEST_F(ServeProgramTest, ErrorsHaveTheFormOfTheirDialect) {
  const TestJson wrong = Object(R"({"messages": 3, "max_tokens": 1})");
  const HttpGot chat = server_->Post("/v1/chat/completions", wrong);
  EXPECT_EQ(chat.status, 400);
  EXPECT_TRUE(chat.json()["error"]["message"].is_string()) << chat.body;
  const HttpGot messages = server_->Post("/v1/messages", wrong);
  EXPECT_EQ(messages.status, 400);
  EXPECT_EQ(messages.json()["type"], "error") << messages.body;
  EXPECT_EQ(messages.json()["error"]["type"], "invalid_request_error");
  const HttpGot ollama = server_->Post("/api/chat", wrong);
  EXPECT_EQ(ollama.status, 400);
  EXPECT_TRUE(ollama.json()["error"].is_string()) << ollama.body;

  const std::string many(20'000, 'x');
  const HttpGot longer = server_->Post(
      "/v1/chat/completions", With(R"({"max_tokens": 1})", Said(many)));
  EXPECT_EQ(longer.status, 400);
  EXPECT_EQ(longer.json()["error"]["code"], "context_length_exceeded");
  EXPECT_EQ(server_->Get("/v1/nowhere").status, 404);
  const HttpGot get = server_->Get("/v1/chat/completions");
  EXPECT_EQ(get.status, 405);
  EXPECT_EQ(get.header("allow"), "POST");
  EXPECT_EQ(server_->Post("/v1/embeddings", Object(R"({"input": "a"})")).status,
            501);
  EXPECT_EQ(server_->Get("/health", "Origin: https://example.org\r\n").status,
            403);
}

// The next turn, as a client sends it.
TestJson NextTurn(const TestJson& turn, const HttpGot& got) {
  TestJson next = turn;
  next["messages"].push_back(
      {{"role", "assistant"},
       {"content", got.json()["choices"][0]["message"]["content"]}});
  next["messages"].push_back({{"role", "user"}, {"content", "And then?"}});
  return next;
}

// Random weights sample ids that no encoding of the same text has: only the
// journal can tell, and what it says outlives a kill. Letters alone, since
// bytes that are no UTF-8 do not come back as they were.
TEST(ServeProgram, AfterAKillOnlyWhatIsNewIsComputed) {
  TempDir home;
  const std::string chat_ml = home.path() + "/chatml.jinja";
  std::ofstream(chat_ml)
      << "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}"
         "<|im_end|>\n{% endfor %}"
         "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";
  const std::vector<std::string> arguments = {kModel, "--template", chat_ml,
                                              "--context", "2048"};
  TestJson turn = With(R"({"max_tokens": 64, "temperature": 1, "seed": 5,
      "response_format": {"type": "json_schema", "json_schema": {"name": "x",
      "schema": {"type": "string", "pattern": "^[a-z]{200,300}$"}}}})",
                       Said(std::string(300, 'a') + " tell me"));
  int n_before = 0;
  {
    ServeProgram server(home, arguments);
    const HttpGot first = server.Post("/v1/chat/completions", turn);
    ASSERT_EQ(first.status, 200) << first.body;
    turn = NextTurn(turn, first);
    const HttpGot second = server.Post("/v1/chat/completions", turn);
    ASSERT_EQ(second.status, 200) << second.body;
    EXPECT_EQ(second.header("x-hearth-ids"), "journal 1/1");
    const int prompt = std::stoi(first.header("x-hearth-prompt"));
    EXPECT_GE(std::stoi(second.header("x-hearth-reused")), prompt + 60);
    turn = NextTurn(turn, second);
    n_before = std::stoi(second.header("x-hearth-prompt")) + 64;
    // Durable: everything that waited for the disk is there.
    const auto waiting = [&] {
      return server.Get("/metrics").body.find("hearth_save_queue_bytes 0") ==
             std::string::npos;
    };
    while (waiting()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_EQ(server.End(SIGKILL), 128 + SIGKILL);
  }
  ServeProgram server(home, arguments);
  const HttpGot third = server.Post("/v1/chat/completions", turn);
  ASSERT_EQ(third.status, 200) << third.body;
  EXPECT_EQ(third.header("x-hearth-ids"), "journal 2/2");
  EXPECT_EQ(third.header("x-hearth-tier"), "disk");
  constexpr int kBlock = 64;
  EXPECT_GE(std::stoi(third.header("x-hearth-reused")), n_before - kBlock)
      << third.header("x-hearth-prompt");
}

TEST(ServeProgram, EndsWhileAStreamIsOpen) {
  TempDir home;
  ServeProgram server(home, WithTemplate({"--context", "65536"}));
  TestJson body = With(R"({"stream": true, "max_tokens": 60000,
                           "ignore_eos": true})",
                       Said("Go on"));
  HttpAsking open(server.port(), "POST", "/v1/chat/completions", body.dump());
  ASSERT_TRUE(open.WaitFor("data: "));
  EXPECT_EQ(server.End(SIGTERM), 0) << server.said();
  const HttpGot got = open.Get();
  EXPECT_EQ(got.status, 200);
  EXPECT_THAT(got.body, HasSubstr("the server is stopping"));
}

TEST(ServeProgram, RefusesWithACauseAndARemedy) {
  TempDir home;
  const std::string command = std::string(HEARTH_PROGRAM) +
                              " serve --host 0.0.0.0 --no-prompt-cache '" +
                              kModel + "' >" + home.path() + "/said 2>&1";
  EXPECT_NE(std::system(command.c_str()), 0);
  const auto said = ReadTextFile(home.path() + "/said");
  EXPECT_THAT(*said, HasSubstr("--api-key-file"));
  EXPECT_THAT(*said, Not(HasSubstr("listening")));
}

}  // namespace
}  // namespace hearth
