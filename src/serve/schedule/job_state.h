// A job and its answers on their way through the scheduler.
//
//   waiting -> matching -> prefill -> decode -> over
//                 ^           |         |
//                 +-- parked <+---------+     memory was wanted
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "serve/schedule/backend.h"
#include "serve/schedule/scheduler.h"

namespace hearth::serve {

struct JobState;

// One answer of a job.
struct Branch {
  enum class State : std::uint8_t {
    kMatching,
    kPrefill,
    kDecode,
    kParked,
    kOver
  };

  JobState* job = nullptr;
  int choice = 0;
  std::uint64_t age = 0;  // the later it was admitted, the greater
  State state = State::kMatching;
  std::unique_ptr<Sequence> sequence;
  std::unique_ptr<Generation> answer;  // from its beginning on

  // What the sequence must hold before the answer goes on: the prompt, or, of
  // an answer that was parked, what the sequence held.
  std::vector<std::int32_t> want;
  int at = 0;                      // of `want`: tokens that are there
  std::vector<std::int32_t> next;  // the answer's: to be appended
  int unread = 0;  // tokens that its draft model must read before there are any
  bool rematched = false;  // memory had lost what was found there

  // Another prefill computes the first `follow_to` tokens of `want`.
  std::uint64_t leader = 0;          // its age
  int follow_to = 0;                 // 0: follows nobody
  std::set<std::uint64_t> followed;  // leaders that it has waited for

  int passed_over = 0;
  double short_since = -1;      // memory is missing; -1: none
  double retry_ms = 0;          // no memory is asked for before
  std::uint64_t parked_at = 0;  // Driver's count of freed memory then

  bool follows() const { return follow_to > 0; }
};

struct JobState {
  JobId id = 0;
  Job job;
  JobReport report;
  std::vector<std::unique_ptr<Branch>> branches;  // none: waiting
  int n_over = 0;
  bool paused = false;
  bool started = false;  // on_start was made
  bool forked = false;   // its answers have begun
  bool failed = false;   // one of them ended with an error
  bool cancelled = false;
  double submitted_ms = 0, attached_ms = 0, first_token_ms = 0;
  int generated = 0;
};

}  // namespace hearth::serve
