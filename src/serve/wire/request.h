// What every dialect's request becomes, and how its answer is told.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/dialogue.h"
#include "hearth/options.h"
#include "hearth/result.h"

namespace hearth::serve {

enum class Dialect : std::uint8_t {
  kChat,            // POST /v1/chat/completions
  kCompletions,     // POST /v1/completions
  kResponses,       // POST /v1/responses
  kMessages,        // POST /v1/messages
  kOllamaChat,      // POST /api/chat
  kOllamaGenerate,  // POST /api/generate
  kLlamaCompletion  // POST /completion, /infill
};

// A refusal in words of HTTP; the dialect gives it its form.
struct WireError {
  int status = 400;
  std::string type = {};     // "invalid_request_error", ...
  std::string code = {};     // "context_length_exceeded", ...; may be empty
  std::string param = {};    // the field's path; may be empty
  std::string message = {};  // names the cause and the remedy
};

// Empty: the model's own default.
struct SamplingWishes {
  std::optional<double> temperature, top_p, min_p, repeat_penalty,
      presence_penalty, frequency_penalty;
  std::optional<int> top_k, repeat_last_n;
  std::optional<std::uint64_t> seed;
  std::map<std::int32_t, double> logit_bias;
};

struct WireRequest {
  Dialect dialect = Dialect::kChat;
  std::string model = {};  // as asked for
  // A conversation, or prompts as they are.
  DialogueRequest dialogue = {};
  AnswerForm form = {};
  bool raw = false;  // `prompts` or `prompt_ids` instead of the dialogue
  std::vector<std::string> prompts = {};
  std::vector<std::vector<std::int32_t>> prompt_ids = {};
  std::string suffix = {};
  bool has_suffix = false;
  bool echo = false;

  SamplingWishes sampling = {};
  std::vector<std::string> stop = {};
  std::optional<int> max_tokens = {};  // -1: until the end
  int n = 1;
  bool ignore_eos = false;
  bool logprobs = false;
  int top_logprobs = 0;

  bool stream = false;
  bool include_usage = false;
  bool return_progress = false;
  std::string label = {};  // prompt_cache_key and its kin
  std::vector<std::string>
      ignored;  // fields without effect, for X-Hearth-Ignored
  // The number of leading messages before each cache breakpoint, rising.
  std::vector<int> breakpoints = {};
  // What only the dialect's own writer reads (reasoning.summary, include, ...).
  std::shared_ptr<const void> own = {};
};

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
};

enum class FinishReason : std::uint8_t { kStop, kLength, kToolCalls, kContext };

struct LogprobEntry {
  std::string token;
  double logprob = 0;
  std::vector<std::pair<std::string, double>> top = {};
};

// Turns one answer into bytes of its dialect. Streamed or whole: the second is
// the first, collected. Every function gives what is to be sent now (empty: no
// bytes yet); HTTP framing is the caller's. `choice` counts from 0.
class AnswerWriter {
 public:
  virtual ~AnswerWriter() = default;
  virtual std::string_view content_type() const = 0;
  // The prompt is found and counted: what it will cost is known.
  virtual std::string Begin(const Usage& usage, const Figures& figures) = 0;
  virtual std::string Event(int choice, const AnswerEvent& event,
                            const std::vector<LogprobEntry>& logprobs) = 0;
  // A sign of life while nothing else comes.
  virtual std::string Ping(int processed, int total) = 0;
  virtual std::string FinishChoice(int choice, FinishReason reason,
                                   const std::string& stop_text) = 0;
  // After every choice: the last bytes.
  virtual std::string End(const Usage& usage, const Figures& figures) = 0;
  // After Begin, a fault: the last bytes.
  virtual std::string Fail(const WireError& error) = 0;
};

// What a writer must know of the server.
struct ServedModel {
  std::string id;            // the true name
  std::int64_t created = 0;  // Unix seconds
  int context_tokens = 0;
};

// An error's body in the words of a dialect.
std::string ErrorBody(Dialect dialect, const WireError& error,
                      const std::string& request_id);

}  // namespace hearth::serve
