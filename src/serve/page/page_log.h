// The requests as they go and the last hundred, and the conversations they
// make. Not safe for threads: its owner locks.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "serve/page/conversation.h"
#include "serve/page/page_state.h"

namespace hearth::serve {

class PageLog {
 public:
  static constexpr std::size_t kRequestsMax = 100;  // ended ones
  static constexpr std::size_t kLanesMax = 64;      // running ones aside

  explicit PageLog(int block_tokens) : block_tokens_(block_tokens) {}

  // A request, and the conversation it belongs to.
  struct Entry {
    PageRequest row;
    JobId job = 0;  // 0: not handed to the scheduler
    int prompt_tokens = 0;
    std::int64_t last_token_ms = 0, first_token_ms = 0;
  };
  struct Lane {
    PageLane view;
    PromptTrace trace;
    std::uint64_t running = 0;  // the request's number; 0: nobody asks
    std::int64_t ended_ms = 0;
    std::uint64_t kept_tokens = 0;  // at the end of the last answer
  };

  Entry& Begin(const PageRequestStart& start, std::int64_t now_ms);
  // Null: unknown, or ended long ago.
  Entry* Find(std::uint64_t number);
  Lane* LaneOf(const Entry& entry);
  void End(Entry& entry, const PageRequestEnd& end, std::int64_t now_ms);

  const std::map<std::uint64_t, Entry>& entries() const { return entries_; }
  std::map<std::uint64_t, Lane>& lanes() { return lanes_; }

 private:
  Lane& LaneFor(const PageRequestStart& start, std::int64_t now_ms);
  void Forget();

  const int block_tokens_;
  std::uint64_t next_number_ = 1, next_lane_ = 1;
  std::map<std::uint64_t, Entry> entries_;  // by number
  std::map<std::uint64_t, Lane> lanes_;     // by id
};

}  // namespace hearth::serve
