// Requests of real clients, as they were sent.
#include "serve/wire/testing/recordings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "serve/wire/request.h"
#include "serve/wire/store/response_store.h"

namespace hearth::serve {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// What the recorded server had answered before: the scripted ids that two
// requests name.
std::unique_ptr<ResponseStore> StoreOfEarlier() {
  auto store = ResponseStore::Open({});
  const std::string call =
      R"({"type":"function_call","id":"fc_x_1","call_id":"call_1",)"
      R"("name":"run","arguments":"{}"})";
  (void)(*store)->Put(
      StoredResponse{.id = "resp_1",
                     .created_s = 1,
                     .input_json = R"([{"role":"user","content":"run it"}])",
                     .response_json = R"({"output":[)" + call + "]}"},
      1);
  return std::move(*store);
}

Parsed<WireRequest> Parse(const Recording& one, const ResponseStore* store) {
  const auto dialect = DialectOf(one.path);
  return ParseRequest(*dialect, one.path, one.query, one.body,
                      {.store = store, .now_s = 1});
}

TEST(Recordings, EveryRequestIsTaken) {
  const std::vector<Recording> all = Recordings();
  if (all.empty()) GTEST_SKIP() << "no ../shared/recordings";
  const auto store = StoreOfEarlier();
  int n_taken = 0;
  for (const Recording& one : all) {
    if (!DialectOf(one.path)) continue;
    const auto request = Parse(one, store.get());
    // The one reference that nothing here can resolve: its id was replaced.
    if (one.file == "ai-openai-responses/003-request.json") {
      ASSERT_FALSE(request.ok());
      EXPECT_EQ(request.error().status, 404);
      EXPECT_THAT(request.error().message, HasSubstr("rs_00000000006c"));
      continue;
    }
    ASSERT_TRUE(request.ok()) << one.file << ": " << request.error().message;
    ++n_taken;
    if (one.client == "claude-code") {
      EXPECT_THAT(request->ignored, Contains("system[0]"));
      EXPECT_THAT(request->dialogue.messages_json,
                  Not(HasSubstr("billing-header")));
      EXPECT_THAT(request->dialogue.tools_json,
                  Not(HasSubstr("DeferredToolPlaceholder")));
      EXPECT_FALSE(request->breakpoints.empty());
    }
    if (one.client == "codex") {
      EXPECT_THAT(request->ignored, Contains(HasSubstr(":web_search")));
      EXPECT_EQ(request->tools.at("multi_agent_v1__close_agent").name,
                "close_agent");
    }
  }
  EXPECT_GT(n_taken, 70);
}

TEST(Recordings, WhatHasNoEffectIsNamed) {
  const std::vector<Recording> all = Recordings();
  if (all.empty()) GTEST_SKIP() << "no ../shared/recordings";
  std::map<std::string, std::vector<std::string>> ignored;
  const auto store = StoreOfEarlier();
  for (const Recording& one : all) {
    if (!DialectOf(one.path)) continue;
    const auto request = Parse(one, store.get());
    if (request.ok()) ignored[one.file] = request->ignored;
  }
  EXPECT_THAT(ignored["openai/001-request.json"], IsEmpty());
  EXPECT_THAT(ignored["openai/007-request.json"],
              ElementsAre("prompt_cache_key", "user", "metadata", "store",
                          "verbosity", "service_tier"));
  EXPECT_THAT(ignored["pi/003-request.json"], Not(Contains("tools[0]")));
  EXPECT_THAT(ignored["ollama/002-request.json"], ElementsAre("keep_alive"));
  EXPECT_THAT(ignored["anthropic/001-request.json"], IsEmpty());
}

OrderedJson Messages(const WireRequest& request) {
  return OrderedJson::parse(request.dialogue.messages_json);
}

// P4: what one turn computed serves the next, for every agent.
TEST(Recordings, EachTurnExtendsTheLast) {
  const std::vector<Recording> all = Recordings();
  if (all.empty()) GTEST_SKIP() << "no ../shared/recordings";
  const std::map<std::string, int> agents = {
      {"claude-code", 3}, {"codex", 3}, {"cline", 2},    {"continue", 2},
      {"opencode", 3},    {"pi", 4},    {"qwen-code", 2}};
  std::map<std::string, int> n_extended;
  std::map<std::string, WireRequest> last;
  for (const Recording& one : all) {
    if (agents.find(one.client) == agents.end() || !DialectOf(one.path)) {
      continue;
    }
    auto request = Parse(one, nullptr);
    ASSERT_TRUE(request.ok()) << one.file << ": " << request.error().message;
    // A title request has no tools, and is a conversation of its own.
    if (request->dialogue.tools_json.empty()) continue;
    const std::string conversation =
        one.client + one.path +
        (one.step.find("B") == std::string::npos ? " A" : " B");
    const auto earlier = last.find(conversation);
    if (earlier != last.end()) {
      const OrderedJson before = Messages(earlier->second);
      const OrderedJson now = Messages(*request);
      ASSERT_LT(before.size(), now.size()) << one.file;
      for (std::size_t i = 0; i < before.size(); ++i) {
        EXPECT_EQ(before[i].dump(), now[i].dump()) << one.file << " " << i;
      }
      EXPECT_EQ(earlier->second.dialogue.tools_json,
                request->dialogue.tools_json)
          << one.file;
      EXPECT_EQ(earlier->second.dialogue.kwargs_json,
                request->dialogue.kwargs_json)
          << one.file;
      ++n_extended[one.client];
    }
    last.insert_or_assign(conversation, std::move(*request));
  }
  EXPECT_EQ(n_extended, agents);
}

TEST(Recordings, TwoConversationsBeginAlike) {
  const std::vector<Recording> all = Recordings();
  if (all.empty()) GTEST_SKIP() << "no ../shared/recordings";
  std::map<std::string, OrderedJson> first;
  for (const Recording& one : all) {
    if (one.client != "claude-code" && one.client != "codex") continue;
    const auto request = Parse(one, nullptr);
    ASSERT_TRUE(request.ok());
    first.emplace(one.client + one.step, Messages(*request)[0]);
  }
  for (const std::string client : {"claude-code", "codex"}) {
    EXPECT_EQ(first.at(client + "conversation A"),
              first.at(client + "conversation B"));
  }
}

}  // namespace
}  // namespace hearth::serve
