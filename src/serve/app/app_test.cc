// Requests handed to an App without sockets: what each is answered with, and
// what happens when its client leaves, reads slowly, or the server ends.
#include <gmock/gmock.h>

#include "serve/app/app_testing.h"

namespace hearth::serve {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kAsk =
    R"({"prompt": "One two", "max_tokens": 5, "temperature": 0})";
// Goes on for longer than any test looks at it.
constexpr const char* kLong =
    R"({"prompt": "One two", "max_tokens": 15000, "stream": true,
        "ignore_eos": true, "temperature": 0})";

TEST(App, SaysThatItLoadsAndThatItStops) {
  AppUnderTest test;
  auto early = test.Answer("POST", "/v1/completions", kAsk);
  EXPECT_EQ(early->status(), 503);
  EXPECT_EQ(early->header("retry-after"), "2");
  EXPECT_THAT(early->body(), HasSubstr("being opened"));
  EXPECT_THAT(test.Answer("GET", "/health")->body(), HasSubstr("loading"));
  test.app.Serve(test.core);
  EXPECT_EQ(test.Answer("GET", "/health")->status(), 200);
  test.app.Stop();
  EXPECT_EQ(test.Answer("GET", "/health")->status(), 503);
  EXPECT_THAT(test.Answer("POST", "/v1/completions", kAsk)->body(),
              HasSubstr("stopping"));
}

TEST(App, PathsThatAreNoneOrTakeAnotherMethod) {
  AppUnderTest test;
  test.app.Serve(test.core);
  EXPECT_EQ(test.Answer("GET", "/v1/nothing")->status(), 404);
  auto wrong = test.Answer("GET", "/v1/completions");
  EXPECT_EQ(wrong->status(), 405);
  EXPECT_EQ(wrong->header("allow"), "POST");
  EXPECT_EQ(test.Answer("POST", "/hearth/v1/cache", "{}")->status(), 404)
      << "nothing is kept here";
  const std::string counted = test.Answer("GET", "/metrics")->body();
  EXPECT_THAT(counted, HasSubstr("path=\"other\",status=\"404\""));
}

TEST(App, AnAnswerWholeAndStreamedIsOne) {
  AppUnderTest test;
  test.app.Serve(test.core);
  auto whole = test.Answer("POST", "/v1/completions", kAsk);
  ASSERT_EQ(whole->status(), 200) << whole->body();
  EXPECT_NE(whole->header("x-hearth-seed"), "");
  const auto answer = OrderedJson::parse(whole->body());
  EXPECT_EQ(answer["usage"]["completion_tokens"], 5);
  OrderedJson ask = OrderedJson::parse(kAsk);
  ask["stream"] = true;
  auto streamed = test.Answer("POST", "/v1/completions", ask.dump());
  EXPECT_THAT(streamed->body(), HasSubstr("data: [DONE]"));
  EXPECT_THAT(
      streamed->body(),
      HasSubstr(OrderedJson(answer["choices"][0]["finish_reason"]).dump()));
}

TEST(App, ASeedOfTheServersOwnIsEveryRequests) {
  AppUnderTest test;
  test.core.has_seed = true;
  test.core.sampling.seed = 77;
  test.core.sampling.temperature = 1;
  test.app.Serve(test.core);
  const std::string ask = R"({"prompt": "One", "max_tokens": 8})";
  auto first = test.Answer("POST", "/v1/completions", ask);
  auto second = test.Answer("POST", "/v1/completions", ask);
  EXPECT_EQ(first->header("x-hearth-seed"), "77");
  const auto text = [](FakeReply& reply) {
    return OrderedJson::parse(reply.body())["choices"][0]["text"];
  };
  EXPECT_EQ(text(*first), text(*second));
  auto own = test.Answer("POST", "/v1/completions",
                         R"({"prompt": "One", "max_tokens": 1, "seed": 3})");
  EXPECT_EQ(own->header("x-hearth-seed"), "3");
}

TEST(App, WhatCannotBeAnsweredIsRefusedBeforeAnyWork) {
  AppUnderTest test;
  test.app.Serve(test.core);
  auto chat = test.Answer("POST", "/v1/chat/completions",
                          R"({"messages": [{"role": "user",
                                            "content": "Hi"}]})");
  EXPECT_EQ(chat->status(), 400);
  EXPECT_THAT(chat->body(), HasSubstr("no chat template"));
  const std::string word = "one ";
  std::string much;
  for (int i = 0; i < 20000; ++i) much += word;
  auto long_one = test.Answer("POST", "/v1/completions",
                              OrderedJson({{"prompt", much}}).dump());
  EXPECT_EQ(long_one->status(), 400);
  EXPECT_THAT(long_one->body(), HasSubstr("context_length_exceeded"));
  EXPECT_EQ(test.Answer("POST", "/v1/completions", "{")->status(), 400);
  EXPECT_EQ(test.core.scheduler->View().passes, 0u);
}

TEST(App, AClientThatLeavesIsComputedForNoMore) {
  AppUnderTest test;
  test.app.Serve(test.core);
  auto reply = test.Ask("POST", "/v1/completions", kLong);
  reply->AwaitText("data: ");
  reply->watch().gone();
  // It ends at its next token or as it is cancelled, whichever comes first.
  const auto over = [&] {
    const SchedulerView view = test.core.scheduler->View();
    return view.cancelled + view.done > 0;
  };
  while (!over()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_THAT(reply->body(), Not(HasSubstr("[DONE]")));
  // Its record is made by a worker after that.
  std::string counted;
  do {
    counted = test.Answer("GET", "/metrics")->body();
  } while (counted.find("hearth_cancelled_total") == std::string::npos);
  EXPECT_THAT(counted, HasSubstr("phase=\"decode\""));
  EXPECT_EQ(test.Answer("POST", "/v1/completions", kAsk)->status(), 200);
}

TEST(App, ASlowReadersAnswerStandsStill) {
  AppUnderTest test;
  test.app.Serve(test.core);
  auto reply = test.Ask("POST", "/v1/completions", kLong);
  reply->AwaitText("data: ");
  reply->watch().full(true);
  const auto state = [&] {
    const SchedulerView view = test.core.scheduler->View();
    return view.jobs.empty() ? JobView::State::kWaiting
                             : view.jobs.front().state;
  };
  // What is seen is made between passes.
  while (state() != JobView::State::kPaused) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const std::size_t before = reply->body().size();
  reply->watch().full(false);
  while (reply->body().size() == before) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  reply->watch().gone();
}

TEST(App, ASignOfLifeWhileNothingElseComes) {
  AppUnderTest test;
  test.app.Serve(test.core);
  auto reply = test.Ask("POST", "/v1/completions", kLong);
  reply->AwaitText("data: ");
  reply->watch().full(true);  // nothing more comes by itself
  const std::size_t before = reply->body().size();
  reply->watch().quiet();
  EXPECT_GT(reply->body().size(), before);
  reply->watch().gone();
}

TEST(App, FullHousesAreSaidSo) {
  AppUnderTest test({}, {.running_max = 1, .waiting_max = 1});
  test.app.Serve(test.core);
  auto first = test.Ask("POST", "/v1/completions", kLong);
  first->AwaitText("data: ");
  // Until a pass is over, who was let in during it counts among those who wait.
  const auto jobs = [&] { return test.core.scheduler->View().jobs; };
  while (jobs().empty() || jobs()[0].state == JobView::State::kWaiting) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  auto second = test.Ask("POST", "/v1/completions", kLong);
  while (jobs().size() < 2) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  auto third = test.Answer("POST", "/v1/completions", kAsk);
  EXPECT_EQ(third->status(), 503);
  EXPECT_NE(third->header("retry-after"), "");
  first->watch().gone();
  second->watch().gone();
}

TEST(App, ToolsAreCompiledOnce) {
  AppUnderTest test(kTestData + "/chat/templates/Qwen-Qwen3-0.6B.jinja");
  test.app.Serve(test.core);
  const std::string ask = R"({"max_tokens": 3, "tool_choice": "required",
      "messages": [{"role": "user", "content": "Hi"}],
      "tools": [{"type": "function", "function": {"name": "pick",
        "parameters": {"type": "object",
                       "properties": {"n": {"type": "integer"}}}}}]})";
  for (int i = 0; i < 2; ++i) {
    auto reply = test.Answer("POST", "/v1/chat/completions", ask);
    ASSERT_EQ(reply->status(), 200) << reply->body();
  }
  const std::string counted = test.Answer("GET", "/metrics")->body();
  EXPECT_THAT(counted, HasSubstr("hearth_form_compile_seconds_count 1\n"));
  EXPECT_THAT(counted, Not(HasSubstr("hearth_mask_seconds_count 0\n")));
}

}  // namespace
}  // namespace hearth::serve
