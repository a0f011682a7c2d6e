#include "serve/page/feed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

namespace hearth::serve {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::vector<std::int32_t> Ids(int n, int first = 0) {
  std::vector<std::int32_t> ids(static_cast<std::size_t>(n));
  std::iota(ids.begin(), ids.end(), first);
  return ids;
}

// The JSON of an event of the given name.
Json DataOf(const std::string& frame, const std::string& event) {
  const std::string head = "event: " + event + "\ndata: ";
  EXPECT_THAT(frame, StartsWith(head));
  EXPECT_EQ(frame.substr(frame.size() - 2), "\n\n");
  EXPECT_EQ(frame.find('\n', head.size()), frame.size() - 2) << "one line";
  return Json::parse(frame.substr(head.size()));
}

SyncReport Reused(int prompt, int reused, const std::string& tier,
                  const std::string& miss = "") {
  SyncReport report;
  report.prompt_tokens = prompt;
  report.reused_tokens = reused;
  report.reuse_tier = tier;
  report.miss_reason = miss;
  return report;
}

class PageFeedTest : public ::testing::Test {
 protected:
  std::int64_t now_ = 1'800'000'000'000;
  PageFeed feed_{{"a-model", 4096, 64}, [this] { return now_; }};
  PageMeters meters_;
  SchedulerView view_;

  PageFeed::Ticket Begin(const std::vector<std::int32_t>& prompt) {
    PageRequestStart start;
    start.id = "req-1";
    start.client = "claude-cli/2.1 (external, cli)";
    start.path = "/v1/messages";
    start.prompt = prompt;
    return feed_.Begin(start);
  }
  void End(PageFeed::Ticket ticket, int reused, int computed, int completion) {
    PageRequestEnd end;
    end.job.prompt_tokens = reused + computed;
    end.job.reused_tokens = reused;
    end.job.computed_tokens = computed;
    end.completion_tokens = completion;
    feed_.End(ticket, end);
  }
  Json Snapshot() {
    feed_.Observe(view_, meters_);
    return DataOf(feed_.Snapshot(), "snapshot");
  }
  void Run(JobId id, JobView::State state, int done, int generated) {
    JobView job;
    job.id = id;
    job.state = state;
    job.tokens_done = done;
    job.generated = generated;
    view_.jobs = {job};
  }
};

TEST_F(PageFeedTest, BeforeAnythingTheSnapshotIsWholeAndEmpty) {
  const Json json = Snapshot();
  EXPECT_EQ(json["model"]["id"], "a-model");
  EXPECT_EQ(json["model"]["block_tokens"], 64);
  EXPECT_TRUE(json["lanes"].empty());
  EXPECT_TRUE(json["requests"].empty());
  EXPECT_EQ(json["series"]["ttft_ms"].size(), 120u);
  EXPECT_TRUE(json["series"]["ttft_ms"][119].is_null());
  EXPECT_EQ(json["today"]["requests"], 0);
}

TEST_F(PageFeedTest, ALaneSaysWhereEachTokenIs) {
  const auto ticket = Begin(Ids(1000));
  feed_.Submitted(ticket, 5);
  feed_.Found(ticket, Reused(1000, 640, "disk", "block 10 is damaged"));
  Run(5, JobView::State::kPrefill, 768, 0);
  const Json lane = Snapshot()["lanes"][0];
  EXPECT_EQ(lane["client"], "Claude Code");
  EXPECT_EQ(lane["state"], "prefill");
  EXPECT_EQ(lane["parts"],
            Json::parse(R"([["mapped",640],["computed",128],["todo",232]])"));
  EXPECT_EQ(lane["miss"], "block 10 is damaged");

  Run(5, JobView::State::kDecode, 1000, 7);
  EXPECT_EQ(Snapshot()["lanes"][0]["parts"],
            Json::parse(R"([["mapped",640],["computed",360],["computed",7]])"));
}

TEST_F(PageFeedTest, AtRestItIsInMemoryThenOnDiskThenGone) {
  const auto ticket = Begin(Ids(100));
  End(ticket, 0, 100, 20);
  view_.resting = 1;
  meters_.has_store = true;
  EXPECT_EQ(Snapshot()["lanes"][0]["state"], "resting");
  view_.resting = 0;
  const Json stored = Snapshot()["lanes"][0];
  EXPECT_EQ(stored["state"], "stored");
  EXPECT_EQ(stored["parts"], Json::parse(R"([["disk",120]])"));
  meters_.has_store = false;
  EXPECT_EQ(Snapshot()["lanes"][0]["state"], "gone");
}

TEST_F(PageFeedTest, TheNextTurnIsTheSameLaneAnotherConversationIsNot) {
  End(Begin(Ids(300)), 0, 300, 10);
  End(Begin(Ids(400)), 300, 100, 10);
  auto fork = Ids(400);
  fork[200] = 9999;
  End(Begin(fork), 128, 272, 10);
  const Json lanes = Snapshot()["lanes"];
  ASSERT_EQ(lanes.size(), 2u);
  EXPECT_EQ(lanes[0]["turns"], 1);
  EXPECT_EQ(lanes[1]["turns"], 2);
}

TEST_F(PageFeedTest, TwoThatRunAtTheSameTimeAreTwoLanes) {
  Begin(Ids(300));
  Begin(Ids(300));
  EXPECT_EQ(Snapshot()["lanes"].size(), 2u);
}

TEST_F(PageFeedTest, ARefusedRequestIsListedAndNoLane) {
  const auto ticket = Begin({});
  PageRequestEnd end;
  end.status = 400;
  end.fault = "context_length_exceeded";
  feed_.End(ticket, end);
  const Json json = Snapshot();
  EXPECT_TRUE(json["lanes"].empty());
  EXPECT_EQ(json["requests"][0]["status"], 400);
  EXPECT_EQ(json["requests"][0]["fault"], "context_length_exceeded");
  EXPECT_EQ(json["today"]["prompt_tokens"], 0);
}

TEST_F(PageFeedTest, AChangeHasOnlyWhatChanged) {
  Begin(Ids(100));
  feed_.Observe(view_, meters_);
  feed_.Observe(view_, meters_);
  EXPECT_EQ(feed_.Change(), "");
  now_ += 100;
  meters_.memory_held = 7;
  feed_.Observe(view_, meters_);
  const Json json = DataOf(feed_.Change(), "change");
  EXPECT_EQ(json["meters"]["memory_held"], 7);
  EXPECT_EQ(json.count("lanes") + json.count("requests") + json.count("today"),
            0u);
}

// What a watcher knows after a snapshot and all changes is what a new snapshot
// says.
TEST_F(PageFeedTest, SnapshotAndChangesAddUp) {
  Json known = Snapshot();
  const auto apply = [&](const Json& change) {
    for (const char* part : {"meters", "today", "rates", "series", "now_ms"}) {
      if (change.contains(part)) known[part] = change[part];
    }
    const auto merge = [&](const char* list, const char* key) {
      if (!change.contains(list)) return;
      for (const Json& item : change[list]) {
        bool found = false;
        for (Json& old : known[list]) {
          if (old[key] != item[key]) continue;
          old = item;
          found = true;
        }
        if (!found) known[list].insert(known[list].begin(), item);
      }
    };
    merge("lanes", "id");
    merge("requests", "number");
  };
  const auto step = [&] {
    now_ += 700;
    feed_.Observe(view_, meters_);
    if (!feed_.Change().empty()) apply(DataOf(feed_.Change(), "change"));
  };
  for (int i = 0; i < 12; ++i) {
    const auto ticket = Begin(Ids(100 + 40 * i, i % 3));
    step();
    feed_.Submitted(ticket, static_cast<JobId>(i + 1));
    feed_.Found(ticket, Reused(100 + 40 * i, 20 * i, "memory"));
    Run(static_cast<JobId>(i + 1), JobView::State::kDecode, 100 + 40 * i, i);
    feed_.Token(ticket);
    step();
    End(ticket, 20 * i, 100 + 20 * i, i);
    view_.jobs.clear();
    step();
  }
  const Json fresh = DataOf(feed_.Snapshot(), "snapshot");
  EXPECT_EQ(known["lanes"], fresh["lanes"]);
  EXPECT_EQ(known["requests"], fresh["requests"]);
  EXPECT_EQ(known["today"], fresh["today"]);
  EXPECT_EQ(known["series"], fresh["series"]);
}

TEST_F(PageFeedTest, LastHundredRequestsAndSixtyFourLanesAreKept) {
  for (int i = 0; i < 150; ++i) {
    auto ids = Ids(70);
    ids[0] = -1 - i;
    End(Begin(ids), 0, 70, 1);
  }
  const Json json = Snapshot();
  EXPECT_LE(json["requests"].size(), 101u);
  EXPECT_GE(json["requests"].size(), 100u);
  EXPECT_EQ(json["requests"][0]["number"], 150);
  EXPECT_LE(json["lanes"].size(), 65u);
}

TEST_F(PageFeedTest, FirstTokenAndGapsGoIntoTheStepOfTheirTime) {
  const auto ticket = Begin(Ids(10));
  now_ += 400;
  feed_.Token(ticket);
  now_ += 250;
  feed_.Token(ticket);
  const Json series = Snapshot()["series"];
  EXPECT_EQ(series["ttft_ms"][119], 400.0);
  EXPECT_EQ(series["gap_ms"][119], 250.0);
  EXPECT_EQ(series["tokens"][119], 2.0);
  now_ += 600'000;
  EXPECT_TRUE(Snapshot()["series"]["gap_ms"][0].is_null());
}

TEST_F(PageFeedTest, SecondsSparedAreClaimedOnlyAtAMeasuredRate) {
  End(Begin(Ids(1000)), 900, 100, 1);
  EXPECT_EQ(Snapshot()["today"]["seconds_spared"], 0.0);
  view_.prefill_rate = 300;
  Snapshot();
  End(Begin(Ids(1000, 7)), 900, 100, 1);
  EXPECT_EQ(Snapshot()["today"]["seconds_spared"], 3.0);
}

TEST_F(PageFeedTest, ANewDayCountsFromZero) {
  End(Begin(Ids(10)), 0, 10, 1);
  EXPECT_EQ(Snapshot()["today"]["requests"], 1);
  now_ += 26 * 3600 * 1000;
  EXPECT_EQ(Snapshot()["today"]["requests"], 0);
}

TEST_F(PageFeedTest, NamesThatAreNoUtf8AreStillJson) {
  PageRequestStart start;
  start.id = "\xff\xfe";
  start.label = "\xc3";
  start.client = "\x01\xf0weird\n/1";
  const auto ids = Ids(10);
  start.prompt = ids;
  feed_.Begin(start);
  EXPECT_EQ(Snapshot()["lanes"][0]["client"], "weird");
}

}  // namespace
}  // namespace hearth::serve
