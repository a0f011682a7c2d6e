// What the server counts, as Prometheus reads it: hearth's own names, and
// llama-server's for dashboards that have them.
//
// Threads  any.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/miss_kind.h"

namespace hearth::serve {

// What one request came to.
struct RequestFigures {
  std::string path;  // a known one, never what a client made up
  int status = 0;
  std::string tier;         // where reused tokens came from
  bool missed = false;      // not all was reused that could have been
  MissKind miss_kind = {};  // then why
  int prompt = 0, reused = 0, completion = 0;
  int preemptions = 0;
  double queue_ms = 0, lookup_ms = 0, prefill_ms = 0, ttft_ms = 0,
         decode_ms = 0;
  bool generated = false;  // the figures above count
  bool fault = false;      // an answer that was malformed
  std::string cancelled;   // in which phase; empty: not
};

// What is so now, looked up when somebody asks.
struct ServerGauges {
  int running = 0, waiting = 0, connections = 0, resting = 0;
  double prefill_rate = 0, decode_rate = 0;  // tokens/s, lately
  std::uint64_t kv_held_bytes = 0, kv_mapped_bytes = 0, kv_budget_bytes = 0;
  std::uint64_t kv_state_bytes = 0;  // of kv_held_bytes
  std::uint64_t store_bytes = 0, store_budget_bytes = 0;
  std::uint64_t save_queue_bytes = 0;  // on their way to the store
  // Since the start.
  std::uint64_t saves_lost = 0;
  std::uint64_t passes = 0, mixed_passes = 0, rows = 0;
  std::uint64_t preempted_prefills = 0, preempted_decodes = 0;
};

// A name for a label.
std::string_view NameOf(MissKind kind);

class Metrics {
 public:
  static std::unique_ptr<Metrics> Make(const std::string& tool_format);
  virtual ~Metrics() = default;

  virtual void Count(const RequestFigures& request) = 0;
  virtual void TokenGap(double ms) = 0;  // between two tokens of an answer
  virtual void StreamPaused() = 0;
  // What an answer's form costs: finding which tokens may come next, once for
  // each token; and making the automaton, once for each form that is new.
  virtual void Mask(double ms) = 0;
  virtual void Compiled(double ms) = 0;
  virtual std::string Text(const ServerGauges& now) = 0;
};

}  // namespace hearth::serve
