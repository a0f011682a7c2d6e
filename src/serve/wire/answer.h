// How an answer is told in each dialect.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "serve/wire/request.h"
#include "serve/wire/stored.h"

namespace hearth::serve {

// What a request cost: prompt = reused + computed, in every dialect.
struct Usage {
  int prompt = 0, reused = 0, computed = 0, written = 0;
  int computed_to_breakpoint = 0;  // of computed
  int completion = 0, reasoning = 0;
};

// Times in milliseconds, and what the cache did.
struct Figures {
  double queue_ms = 0, lookup_ms = 0, prefill_ms = 0, ttft_ms = 0,
         decode_ms = 0;
  std::string tier = {}, miss = {};
  std::uint64_t seed = 0, kv_bytes = 0;
  std::string ids = {};  // "journal 3/3"
  std::string parse_fault = {};
  bool preempted = false;
  // Of WhyMissed; empty: not asked, or nothing was missed.
  std::string cache_miss_reason = {};
};

enum class FinishReason : std::uint8_t { kStop, kLength, kToolCalls, kContext };

// `token` is the token's bytes, UTF-8 or not.
struct LogprobEntry {
  std::string token;
  double logprob = 0;
  std::vector<std::pair<std::string, double>> top = {};
};

// When a caller that has nothing else to send calls Ping.
struct PingRule {
  bool at_once = false;  // also right after Begin
  int first_ms = 0;      // since the last bytes
  int every_ms = 0;
};

// Turns one answer into bytes of its dialect. Streamed or whole: the second is
// the first, collected. Every function gives what is to be sent now (empty: no
// bytes yet); HTTP framing is the caller's. Calls come in the order
//   Begin (Event | Ping | FinishChoice)* End     or at any time after Begin
//   Fail
// and events of a choice end with its FinishChoice. `choice` counts from 0,
// those of the first prompt first. Text may be cut anywhere, also inside a
// character: the rest of that is held back.
class AnswerWriter {
 public:
  virtual ~AnswerWriter() = default;
  virtual std::string_view content_type() const = 0;
  virtual std::string id()
      const = 0;  // the answer's: "chatcmpl-...", "msg_..."
  virtual PingRule pings() const = 0;
  // The text that `echo` repeats before that choice's; before Begin.
  virtual void SetEcho(int choice, std::string text) = 0;
  // The prompt is found and counted: what it will cost is known.
  virtual std::string Begin(const Usage& usage, const Figures& figures) = 0;
  virtual std::string Event(int choice, const AnswerEvent& event,
                            const std::vector<LogprobEntry>& logprobs) = 0;
  // A sign of life: `processed` of `total` prompt tokens, `elapsed_ms` since
  // the prefill began.
  virtual std::string Ping(int processed, int total, double elapsed_ms) = 0;
  virtual std::string FinishChoice(int choice, FinishReason reason,
                                   const std::string& stop_text) = 0;
  // After every choice: the last bytes.
  virtual std::string End(const Usage& usage, const Figures& figures) = 0;
  // After Begin, a fault: the last bytes.
  virtual std::string Fail(const WireError& error) = 0;
  // After End: what the response store is to keep.
  virtual std::optional<StoredResponse> TakeRecord() = 0;
};

// What a writer must know of the server.
struct ServedModel {
  std::string id;            // the true name
  std::int64_t created = 0;  // Unix seconds
  int context_tokens = 0;
  // Calls have ids of 9 letters and digits, as Mistral's templates demand.
  bool short_call_ids = false;
};

// `request_id`: letters, digits, '-' and '_'; all ids of the answer are made
// from it. `now_s`: Unix seconds. `store`: whose key reasoning that is sent out
// to come back is encrypted with; null: it is plain.
std::unique_ptr<AnswerWriter> MakeWriter(const WireRequest& request,
                                         const ServedModel& served,
                                         const std::string& request_id,
                                         std::int64_t now_s,
                                         const ResponseStore* store = nullptr);

}  // namespace hearth::serve
