// All that the page shows at one instant, as plain data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "serve/page/feed.h"

namespace hearth::serve {

// Where a run of a conversation's tokens is.
enum class Place : std::uint8_t {
  kTodo,      // not computed yet
  kComputed,  // by this request
  kMemory,    // reused, from memory
  kMapped,    // reused, mapped from the store
  kFetched,   // reused, from a shared server
  kDisk       // at rest in the store alone
};

struct LanePart {
  Place place = Place::kTodo;
  int tokens = 0;
  bool operator==(const LanePart&) const = default;
};

enum class LaneState : std::uint8_t {
  kWaiting,
  kMatching,
  kPrefill,
  kDecode,
  kPaused,
  kResting,  // nobody asks; its KV is in memory
  kStored,   // nobody asks; its KV is in the store
  kGone      // nobody asks, and nothing of it is kept
};

// One conversation: requests each of which goes on where the one before ended.
struct PageLane {
  std::uint64_t id = 0;
  LaneState state = LaneState::kWaiting;
  std::string client, label;
  std::vector<LanePart> parts;
  int prompt_tokens = 0, reused_tokens = 0, generated = 0;
  int turns = 1;
  double rate = 0;   // tokens/s of the answer, or of the prompt
  std::string miss;  // why not more was reused
  std::int64_t since_ms = 0;
  bool operator==(const PageLane&) const = default;
};

// One request, running or among the last that ended.
struct PageRequest {
  std::uint64_t number = 0;
  std::uint64_t lane = 0;  // 0: none, it was refused
  std::string id, client, path, fault, tier, miss;
  std::int64_t started_ms = 0;
  int status = 0;  // 0: running
  JobReport job;
  int completion_tokens = 0;
};

struct PageToday {
  std::uint64_t requests = 0, prompt_tokens = 0, reused_tokens = 0;
  std::uint64_t completion_tokens = 0;
  double seconds_spared = 0;
  bool operator==(const PageToday&) const = default;
};

struct PageRates {
  double prefill = 0, decode = 0;  // tokens/s
  int running = 0, waiting = 0, resting = 0;
  bool operator==(const PageRates&) const = default;
};

// Ten minutes in steps of five seconds, oldest first; -1: nothing happened.
struct PageSeries {
  std::vector<double> ttft_ms, gap_ms;  // the longest of each step
  std::vector<double> tokens;           // of answers, in each step
  bool operator==(const PageSeries&) const = default;
};

struct PageState {
  std::uint64_t sequence = 0;
  std::int64_t now_ms = 0;
  PageMeters meters;
  PageToday today;
  PageRates rates;
  std::vector<PageLane> lanes;         // newest first
  std::vector<PageRequest> requests;   // newest first
  std::vector<std::uint64_t> touched;  // numbers of those that changed
  PageSeries series;
};

}  // namespace hearth::serve
