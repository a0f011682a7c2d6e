// What the page shows of a server at work: told by the requests as they go, and
// given as server-sent events (docs/page.md). Ids and numbers
// only: no text of a prompt or an answer ever gets here.
//
//   const PageFeed::Ticket ticket = feed.Begin({...});   // valid, in line
//   feed.Submitted(ticket, job);                         // Scheduler::Submit
//   feed.Found(ticket, sync_report);                     // on_start
//   feed.Token(ticket);                                  // on_token, each
//   feed.End(ticket, {...});                             // whatever happened
//
//   every 250 ms while anybody watches /hearth/v1/events:
//     feed.Observe(scheduler.View(), meters);
//     to a new watcher: feed.Snapshot(); to the others: feed.Change()
//
// Threads  any. Nothing here waits but for a lock that is held for
//          microseconds (Observe: for the time of formatting).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "hearth/engine.h"
#include "serve/schedule/scheduler.h"

namespace hearth::serve {

struct PageModel {
  std::string id;  // the true name
  int context_tokens = 0;
  int block_tokens = 64;
};

struct PageRequestStart {
  std::string id;      // X-Request-Id
  std::string client;  // User-Agent as it came; its program's name is shown
  std::string path;    // "/v1/messages"
  std::string label;   // prompt_cache_key and its kin
  std::span<const std::int32_t> prompt;  // empty: refused before it had ids
};

struct PageRequestEnd {
  int status = 200;   // of HTTP; 499: the client left
  std::string fault;  // an error's code; empty: none
  JobReport job;
  int completion_tokens = 0;
};

// What the server knows besides its requests. Bytes; a budget of 0 is none.
struct PageMeters {
  std::uint64_t memory_held = 0, memory_mapped = 0, memory_budget = 0;
  bool has_store = false;  // a prompt cache directory
  std::uint64_t disk_used = 0, disk_budget = 0;
  std::uint64_t save_queue = 0;
  int connections = 0;
  // Changes whenever the store may hold something else: /hearth/v1/cache is
  // then asked for again.
  std::uint64_t store_version = 0;
  bool operator==(const PageMeters&) const = default;
};

class PageFeed {
 public:
  using Ticket = std::uint64_t;
  // Milliseconds since 1970.
  using Clock = std::function<std::int64_t()>;

  // An empty clock: the system's.
  explicit PageFeed(PageModel model, Clock clock = {});
  ~PageFeed();

  Ticket Begin(const PageRequestStart& start);
  void Submitted(Ticket ticket, JobId job);
  void Found(Ticket ticket, const SyncReport& report);
  void Token(Ticket ticket);
  void End(Ticket ticket, const PageRequestEnd& end);

  // Looks at everything once: what Snapshot and Change then tell.
  void Observe(const SchedulerView& view, const PageMeters& meters);
  // One event: all of what Observe saw last.
  std::string Snapshot() const;
  // One event: what the last Observe saw otherwise than the one before; empty
  // when nothing. The same text for every watcher that has the snapshot of an
  // Observe before it.
  std::string Change() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hearth::serve
