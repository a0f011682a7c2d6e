// What every dialect's request becomes.
//
// Threads  everything here may be called from any thread; nothing blocks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hearth/dialogue.h"
#include "hearth/options.h"
#include "serve/wire/wire_error.h"

namespace hearth::serve {

class ResponseStore;

// Empty: the model's own default.
struct SamplingWishes {
  std::optional<double> temperature, top_p, min_p, repeat_penalty,
      presence_penalty, frequency_penalty;
  std::optional<int> top_k, repeat_last_n;
  std::optional<std::uint64_t> seed;
  std::map<std::int32_t, double> logit_bias;
};

// What a tool is called by its caller; the model knows it by the key.
struct ToolOrigin {
  bool custom = false;     // one text instead of arguments
  std::string name = {};   // as declared
  std::string space = {};  // the `namespace` it was declared in
};

// What only the dialect's own writer reads.
struct DialectNotes {
  virtual ~DialectNotes() = default;
};

struct WireRequest {
  Dialect dialect = Dialect::kChat;
  std::string model = {};   // as asked for; empty: none was named
  std::string space = {};   // as the context's
  bool count_only = false;  // /count_tokens: the prompt's length is the answer
  bool load_only = false;   // no prompt: the writer's Begin and End are all

  // A conversation, or prompts as they are.
  DialogueRequest dialogue = {};
  AnswerForm form = {};
  bool raw = false;  // `prompts` or `prompt_ids` instead of the dialogue
  std::vector<std::string> prompts = {};
  std::vector<std::vector<std::int32_t>> prompt_ids = {};
  // Fill in the middle: between the prompt and this. Files that are context of
  // it: name and text, the farthest first.
  std::string suffix = {};
  bool has_suffix = false;
  std::string middle = {};  // what the answer goes on from, between the two
  std::vector<std::pair<std::string, std::string>> context_files = {};
  bool echo =
      false;  // the writer repeats the prompt: set its text by `SetEcho`

  SamplingWishes sampling = {};
  std::vector<std::string> stop = {};
  std::optional<int> max_tokens = {};  // -1: until the end
  int n = 1;                           // answers to each prompt
  bool ignore_eos = false;
  bool logprobs = false;
  int top_logprobs = 0;
  int context_wanted = 0;  // num_ctx: 400 when the model's is smaller; 0: any

  bool stream = false;
  bool include_usage = false;
  bool return_progress = false;
  std::string label = {};  // prompt_cache_key and its kin
  // Fields without effect, for X-Hearth-Ignored. Add the notes of
  // Dialogue::Constraint before MakeWriter: the `hearth` object names them too.
  std::vector<std::string> ignored = {};
  // The number of leading messages before each cache breakpoint, rising.
  std::vector<int> breakpoints = {};
  int breakpoint_ttl_s = 300;     // the longest that was asked for
  std::string compare_with = {};  // diagnostics.previous_message_id
  std::map<std::string, ToolOrigin> tools = {};  // those with another name
  std::shared_ptr<const DialectNotes> notes = {};

  // Answers, choices of all prompts: their writer counts from 0.
  int n_choices() const {
    const std::size_t n_prompts =
        raw ? std::max<std::size_t>(prompts.size() + prompt_ids.size(), 1) : 1;
    return n * static_cast<int>(n_prompts);
  }
};

// What a request is read against.
struct ParseContext {
  // Whether the model's template reads such a variable; null: it reads all.
  std::function<bool(std::string_view)> reads = {};
  // The template has a known form of calls; otherwise tools are refused.
  bool has_tool_format = true;
  std::string served_model = {};  // with `strict_model` the one name taken
  bool strict_model = false;
  // Where earlier responses are; null: nothing is found. `space`: whose.
  const ResponseStore* store = nullptr;
  std::string space = {};
  std::int64_t now_s = 0;  // Unix seconds, for what is too old
};

// The dialect of a POST, or nothing for a path that is none.
std::optional<Dialect> DialectOf(std::string_view path);

// `path` without the query; `query` without its question mark. Every field is
// taken, named in `ignored`, or refused by name: docs/server-fields.md.
Parsed<WireRequest> ParseRequest(Dialect dialect, std::string_view path,
                                 std::string_view query, std::string_view body,
                                 const ParseContext& context);

}  // namespace hearth::serve
