#include "serve/page/watchers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <vector>

namespace hearth::serve {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

struct FakeReply final : Reply {
  ReplyWatch watch;
  std::string type;
  std::vector<std::string> sent;
  bool ended = false;

  void Watch(ReplyWatch w) override { watch = std::move(w); }
  void Whole(HttpAnswer) override { FAIL() << "events are a stream"; }
  void Start(int status, const std::string& content_type,
             std::vector<HttpHeader>) override {
    EXPECT_EQ(status, 200);
    type = content_type;
  }
  void Send(std::string bytes) override { sent.push_back(std::move(bytes)); }
  void End() override { ended = true; }
};

class PageWatchersTest : public ::testing::Test {
 protected:
  // All that was asked for later.
  void Pass() {
    auto now = std::move(later_);
    later_.clear();
    for (const auto& work : now) work();
  }
  std::shared_ptr<FakeReply> Add() {
    auto reply = std::make_shared<FakeReply>();
    watchers_.Add(reply, {});
    return reply;
  }

  PageFeed feed_{{"m", 10, 16}, [] { return std::int64_t{1'000'000}; }};
  std::uint64_t memory_ = 0;
  int looks_ = 0;
  std::deque<std::function<void()>> later_;
  PageWatchers watchers_{feed_,
                         [this](PageFeed& feed) {
                           ++looks_;
                           PageMeters meters;
                           meters.memory_held = memory_;
                           feed.Observe({}, meters);
                         },
                         [this](int, std::function<void()> work) {
                           later_.push_back(std::move(work));
                         }};
};

TEST_F(PageWatchersTest, NobodyWatchesAndNothingIsLookedAt) {
  Pass();
  EXPECT_EQ(looks_, 0);
  const auto reply = Add();
  Pass();
  EXPECT_EQ(looks_, 1);
  reply->watch.gone();
  Pass();
  Pass();
  EXPECT_EQ(looks_, 1);
  EXPECT_TRUE(later_.empty());
}

TEST_F(PageWatchersTest, ASnapshotThenOnlyWhatChanges) {
  const auto reply = Add();
  EXPECT_EQ(reply->type, "text/event-stream");
  Pass();
  Pass();
  memory_ = 5;
  Pass();
  EXPECT_THAT(reply->sent, ElementsAre(StartsWith("event: snapshot\n"),
                                       StartsWith("event: change\n")));
}

TEST_F(PageWatchersTest, TheSecondOneGetsItsOwnSnapshotAndTheSameChanges) {
  const auto first = Add();
  Pass();
  memory_ = 5;
  const auto second = Add();
  Pass();
  memory_ = 6;
  Pass();
  EXPECT_THAT(second->sent, ElementsAre(StartsWith("event: snapshot\n"),
                                        StartsWith("event: change\n")));
  EXPECT_EQ(first->sent.back(), second->sent.back());
}

TEST_F(PageWatchersTest, WhoDoesNotReadGetsASnapshotWhenItReadsAgain) {
  const auto reply = Add();
  Pass();
  reply->watch.full(true);
  for (int i = 1; i < 5; ++i) {
    memory_ = static_cast<std::uint64_t>(i);
    Pass();
  }
  EXPECT_EQ(reply->sent.size(), 1u);
  reply->watch.full(false);
  Pass();
  EXPECT_THAT(reply->sent.back(), StartsWith("event: snapshot\n"));
}

TEST_F(PageWatchersTest, StoppingEndsEveryStreamAndTakesNobodyOn) {
  const auto reply = Add();
  Pass();
  watchers_.Stop();
  EXPECT_TRUE(reply->ended);
  Pass();
  EXPECT_TRUE(later_.empty());
  EXPECT_TRUE(Add()->ended);
  EXPECT_TRUE(later_.empty());
}

}  // namespace
}  // namespace hearth::serve
