// The page's place in a server: turns tell it of themselves, and whoever
// watches is told (serve/page/feed.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/stopwatch.h"
#include "serve/page/feed.h"
#include "serve/page/watchers.h"

namespace hearth::serve {

struct Core;

class PageDesk {
 public:
  // `core` outlives it, and has its engine, its scheduler and its workers.
  explicit PageDesk(Core& core);

  PageFeed& feed() { return feed_; }
  // GET /hearth/v1/events.
  void Watch(std::shared_ptr<Reply> reply, std::vector<HttpHeader> headers) {
    watchers_.Add(std::move(reply), std::move(headers));
  }
  // Somebody pinned or evicted: pages look at the store again.
  void StoreChanged() { ++asked_changes_; }
  // Before the sockets wait for their streams to end.
  void Stop() { watchers_.Stop(); }

 private:
  void Look(PageFeed& feed);
  void MeasureStore(std::uint64_t jobs_ended);

  Core& core_;
  PageFeed feed_;
  std::atomic<std::uint64_t> asked_changes_{0};
  // Of the store, as it was when it was last looked at. One look at a time.
  std::uint64_t disk_used_ = 0, saves_ = 0, disk_changes_ = 0;
  std::uint64_t jobs_ended_ = 0;
  bool measured_ = false;
  Stopwatch since_measured_;
  PageWatchers watchers_;  // last: ends before what it looks at
};

}  // namespace hearth::serve
