// Requests of real clients (../shared/recordings), sent to the running program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "serve/wire/request.h"
#include "serve/wire/testing/recordings.h"
#include "serve_testing.h"

namespace hearth {
namespace {

using serve::Recording;
using testing::AnyOf;

// Prompts of coding agents are long for a build with checks: unless all are
// asked for (scripts/test-clients does), those beyond this are left out.
constexpr std::size_t kBytesMax = 8500;

// Short answers: what is sent is tried here, not what a tiny model says.
void Shorten(const std::string& path, TestJson& body) {
  const char* const kTokens = "max_tokens";
  if (path.starts_with("/api/")) {
    body["options"]["num_predict"] = 4;
  } else if (path == "/v1/responses") {
    body["max_output_tokens"] = 16;
  } else if (body.contains("thinking")) {
    body[kTokens] = 1032;  // more than its thoughts may take
    body["thinking"]["budget_tokens"] = 1024;
  } else if (body.contains("max_completion_tokens")) {
    body["max_completion_tokens"] = 4;
  } else {
    body[kTokens] = 4;
  }
}

// The status that the request is owed.
int StatusOf(const Recording& one) {
  if (one.path == "/v1/embeddings" || one.path == "/api/embed") return 501;
  // An item that another server kept.
  if (one.file == "ai-openai-responses/003-request.json") return 404;
  // The tiny vocabulary has no tokens to fill in the middle.
  if (one.body.find("\"suffix\":") != std::string::npos) return 400;
  return 200;
}

void CheckMessages(const std::vector<TestJson>& events) {
  EXPECT_EQ(events.front()["type"], "message_start");
  EXPECT_EQ(events.back()["type"], "message_stop");
  int open = -1, next = 0;
  for (const TestJson& event : events) {
    if (event["type"] == "content_block_start") {
      EXPECT_EQ(open, -1);
      open = event["index"];
      EXPECT_EQ(open, next++);
    } else if (event["type"] == "content_block_delta") {
      EXPECT_EQ(event["index"], open);
    } else if (event["type"] == "content_block_stop") {
      EXPECT_EQ(event["index"], open);
      open = -1;
    }
  }
  EXPECT_EQ(open, -1);
}

void CheckResponses(const std::vector<TestJson>& events) {
  EXPECT_EQ(events.front()["type"], "response.created");
  EXPECT_THAT(events.back()["type"].get<std::string>(),
              AnyOf("response.completed", "response.incomplete"));
  int number = -1;
  for (const TestJson& event : events) {
    if (!event.contains("sequence_number")) continue;
    EXPECT_GT(event["sequence_number"], number);
    number = event["sequence_number"];
  }
}

void CheckStream(const std::string& path, const std::string& body) {
  const std::vector<TestJson> events = EventsOf(body);
  ASSERT_FALSE(events.empty()) << body;
  if (path == "/v1/messages") return CheckMessages(events);
  if (path == "/v1/responses") return CheckResponses(events);
  if (path.starts_with("/api/")) {
    for (std::size_t i = 0; i < events.size(); ++i) {
      EXPECT_EQ(events[i]["done"], i + 1 == events.size()) << body;
    }
    return;
  }
  EXPECT_TRUE(body.ends_with("data: [DONE]\n\n")) << body;
  std::map<int, int> finished;  // by choice
  for (const TestJson& event : events) {
    for (const TestJson& choice : event["choices"]) {
      int& n = finished[choice["index"]];
      EXPECT_EQ(n, 0) << body;
      n += choice.value("finish_reason", TestJson()).is_string() ? 1 : 0;
    }
  }
  EXPECT_FALSE(finished.empty()) << body;
  for (const auto& [index, n] : finished) EXPECT_EQ(n, 1) << body;
}

// What a request goes on from: the one before it of the same conversation.
struct Before {
  std::string of;  // client, path and which conversation
  TestJson tools;
  int prompt = 0;
};

Before BeforeOf(const Recording& one, const TestJson& body) {
  const std::size_t named = one.step.find("conversation ");
  const char which =
      one.step.starts_with("B ") ? 'B'
      : named == std::string::npos
          ? '?'
          : one.step[named + std::string("conversation ").size()];
  return {.of = one.client + one.path + which,
          .tools = body.value("tools", TestJson())};
}

// Tokens that were not computed again; -1 where that is not said: headers of a
// stream do not wait for a slow lookup, nor does each dialect say it later.
int ReusedOf(const HttpGot& got) {
  std::string text = got.header("x-hearth-reused");
  if (text.empty()) {
    const std::string mark = "\"reused\":";
    const std::size_t at = got.body.rfind(mark);
    if (at == std::string::npos) return -1;
    text = got.body.substr(at + mark.size(), 10);
  }
  return std::stoi(text);
}

TEST(Replay, WhatClientsSentIsAnswered) {
  const std::vector<Recording> all = serve::Recordings();
  if (all.empty()) GTEST_SKIP() << "no ../shared/recordings";
  TempDir home;
  ServeProgram server(
      home,
      {std::string(HEARTH_TEST_DATA) + "/models/hf/qwen2", "--template",
       std::string(HEARTH_TEST_DATA) + "/chat/templates/Qwen-Qwen3-0.6B.jinja",
       "--alias", "hearth-fixture", "--context", "131072"});
  const bool everything = std::getenv("HEARTH_REPLAY_ALL") != nullptr;
  Before before;
  std::string response_id;
  int n_sent = 0, n_reused = 0;
  for (const Recording& one : all) {
    if (!everything && one.body.size() > kBytesMax) continue;
    SCOPED_TRACE(one.file);
    const std::string path =
        one.path + (one.query.empty() ? "" : "?" + one.query);
    ++n_sent;
    if (one.method == "GET") {
      EXPECT_EQ(server.Get(path).status, StatusOf(one));
      continue;
    }
    TestJson body = TestJson::parse(one.body);
    const bool counts = one.path.ends_with("/count_tokens");
    if (serve::DialectOf(one.path) && !counts) Shorten(one.path, body);
    if (body.contains("previous_response_id")) {
      body["previous_response_id"] = response_id;
    }
    const HttpGot got = server.Post(path, body);
    ASSERT_EQ(got.status, StatusOf(one)) << got.body;
    if (got.status != 200) continue;
    if (got.header("content-type").starts_with("application/json")) {
      EXPECT_TRUE(got.json().is_object()) << got.body;
      if (one.path == "/v1/responses") response_id = got.json()["id"];
    } else {
      CheckStream(one.path, got.body);
    }
    if (got.header("x-hearth-prompt").empty()) continue;
    Before now = BeforeOf(one, body);
    now.prompt = std::stoi(got.header("x-hearth-prompt"));
    const int reused = ReusedOf(got);
    if (reused >= 0 && now.of == before.of && now.of.back() != '?' &&
        now.tools == before.tools) {
      // All but the end of its last block. Behind a new question this template
      // writes earlier calls in another way: all before them.
      const bool asks_anew = one.step.starts_with("B ");
      EXPECT_GE(reused, before.prompt - (asks_anew ? 300 : 64));
      ++n_reused;
    }
    before = now;
  }
  EXPECT_GE(n_sent, everything ? static_cast<int>(all.size()) : 40);
  EXPECT_GE(n_reused, everything ? 4 : 1);
}

}  // namespace
}  // namespace hearth
