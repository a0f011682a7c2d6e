// P9: every field that the APIs publish has an effect, is named in `ignored`,
// or is refused by its name. The lists are those of the openai 7.59,
// @anthropic-ai/sdk 1.14 and ollama 0.6 packages, and of llama-server.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "hearth_test_paths.h"
#include "serve/wire/json/body_json.h"
#include "serve/wire/messages/notes.h"
#include "serve/wire/request.h"
#include "serve/wire/responses/notes.h"

namespace hearth::serve {
namespace {

enum Fate { kTaken, kSaid, kRefused };

struct Field {
  const char* json;  // `"name":value`
  Fate fate;
};

// All that a request can change, as text.
std::string Seen(const WireRequest& r) {
  OrderedJson bias = OrderedJson::object();
  for (const auto& [id, value] : r.sampling.logit_bias) {
    bias[std::to_string(id)] = value;
  }
  const auto number = [](const auto& value) {
    return value ? OrderedJson(*value) : OrderedJson(nullptr);
  };
  const SamplingWishes& s = r.sampling;
  OrderedJson all = {r.model,
                     r.count_only,
                     r.load_only,
                     r.dialogue.messages_json,
                     r.dialogue.tools_json,
                     r.dialogue.kwargs_json,
                     r.form.tool_use,
                     r.form.allowed_tools,
                     r.form.parallel_calls,
                     r.form.body,
                     r.form.body_grammar,
                     r.form.strict_tools,
                     r.form.reasoning_tokens_max,
                     r.raw,
                     r.prompts,
                     r.prompt_ids,
                     r.suffix,
                     r.middle,
                     r.context_files,
                     r.echo,
                     r.stop,
                     number(r.max_tokens),
                     r.n,
                     r.ignore_eos,
                     r.logprobs,
                     r.top_logprobs,
                     r.context_wanted,
                     r.stream,
                     r.include_usage,
                     r.return_progress,
                     r.breakpoints,
                     r.breakpoint_ttl_s,
                     r.compare_with,
                     number(s.temperature),
                     number(s.top_p),
                     number(s.min_p),
                     number(s.repeat_penalty),
                     number(s.presence_penalty),
                     number(s.frequency_penalty),
                     number(s.top_k),
                     number(s.repeat_last_n),
                     number(s.seed),
                     bias};
  if (r.dialect == Dialect::kMessages) {
    const auto& notes = static_cast<const MessagesNotes&>(*r.notes);
    all.push_back(notes.omit_thinking);
    all.push_back(notes.diagnose);
  }
  if (r.dialect == Dialect::kResponses) {
    const auto& notes = static_cast<const ResponsesNotes&>(*r.notes);
    all.push_back(notes.summary);
    all.push_back(notes.encrypted);
    all.push_back(notes.store);
  }
  return all.dump();
}

constexpr Field kChat[] = {
    {R"("audio":{"voice":"x"})", kRefused},
    {R"("frequency_penalty":0.5)", kTaken},
    {R"("function_call":"auto")", kRefused},
    {R"("functions":[{"name":"f"}])", kRefused},
    {R"("logit_bias":{"5":1})", kTaken},
    {R"("logprobs":true)", kTaken},
    {R"("max_completion_tokens":5)", kTaken},
    {R"("max_tokens":5)", kTaken},
    {R"("metadata":{"a":"b"})", kSaid},
    {R"("modalities":["text","audio"])", kRefused},
    {R"("moderation":{"a":1})", kSaid},
    {R"("n":2)", kTaken},
    {R"("parallel_tool_calls":false)", kTaken},
    {R"("prediction":{"type":"content","content":"x"})", kSaid},
    {R"("presence_penalty":0.5)", kTaken},
    {R"("prompt_cache_key":"k")", kSaid},
    {R"("prompt_cache_options":{"a":1})", kSaid},
    {R"("prompt_cache_retention":"24h")", kSaid},
    {R"("reasoning_effort":"low")", kTaken},
    {R"("response_format":{"type":"json_object"})", kTaken},
    {R"("safety_identifier":"x")", kSaid},
    {R"("seed":5)", kTaken},
    {R"("service_tier":"auto")", kSaid},
    {R"("stop":"x")", kTaken},
    {R"("store":true)", kSaid},
    {R"("stream":true)", kTaken},
    {R"("stream_options":{"include_usage":true})", kTaken},
    {R"("stream_options":{"include_obfuscation":true})", kSaid},
    {R"("temperature":0.5)", kTaken},
    {R"("tool_choice":"none","tools":[{"type":"function","function":{"name":"f"}}])",
     kTaken},
    {R"("tools":[{"type":"custom","custom":{"name":"f"}}])", kTaken},
    {R"("top_logprobs":2,"logprobs":true)", kTaken},
    {R"("top_p":0.5)", kTaken},
    {R"("user":"u")", kSaid},
    {R"("verbosity":"low")", kSaid},
    {R"("web_search_options":{"a":1})", kRefused},
    {R"("min_p":0.1)", kTaken},
    {R"("top_k":4)", kTaken},
    {R"("repeat_penalty":1.1)", kTaken},
    {R"("ignore_eos":true)", kTaken},
    {R"("chat_template_kwargs":{"x":1})", kTaken},
    {R"("enable_thinking":false)", kTaken},
    {R"("return_progress":true)", kTaken},
    {R"("grammar":"root ::= \"x\"")", kTaken},
    {R"("cache_prompt":true)", kSaid},
    {R"("id_slot":1)", kSaid},
    {R"("n_keep":1)", kSaid},
    {R"("never_heard_of":1)", kSaid}};

constexpr Field kCompletions[] = {
    {R"("best_of":2)", kRefused},
    {R"("best_of":2,"n":2)", kTaken},
    {R"("echo":true)", kTaken},
    {R"("frequency_penalty":1)", kTaken},
    {R"("logit_bias":{"1":2})", kTaken},
    {R"("logprobs":2)", kTaken},
    {R"("max_tokens":9)", kTaken},
    {R"("n":2)", kTaken},
    {R"("presence_penalty":1)", kTaken},
    {R"("seed":1)", kTaken},
    {R"("stop":["a","b"])", kTaken},
    {R"("stream":true)", kTaken},
    {R"("stream_options":{"include_usage":true})", kTaken},
    {R"("suffix":"x")", kTaken},
    {R"("temperature":1)", kTaken},
    {R"("top_p":1)", kTaken},
    {R"("user":"u")", kSaid},
    {R"("echo":true,"logprobs":1)", kRefused}};

constexpr Field kResponses[] = {
    {R"("access_programs":["x"])", kSaid},
    {R"("background":true)", kRefused},
    {R"("background_options":{"a":1})", kSaid},
    {R"("context_management":[{"type":"compaction"}])", kSaid},
    {R"("conversation":"conv_1")", kRefused},
    {R"("image":{"a":1})", kSaid},
    {R"("include":["reasoning.encrypted_content"])", kTaken},
    {R"("include":["message.output_text.logprobs"])", kTaken},
    {R"("include":["file_search_call.results"])", kSaid},
    {R"("instructions":"x")", kTaken},
    {R"("max_output_tokens":5)", kTaken},
    {R"("max_tool_calls":5)", kSaid},
    {R"("metadata":{"a":"b"})", kSaid},
    {R"("moderation":{"a":1})", kSaid},
    {R"("parallel_tool_calls":false)", kTaken},
    {R"("previous_response_id":"resp_9")", kRefused},
    {R"("prompt":{"id":"x"})", kRefused},
    {R"("prompt_cache_key":"k")", kSaid},
    {R"("prompt_cache_options":{"a":1})", kSaid},
    {R"("prompt_cache_retention":"24h")", kSaid},
    {R"("reasoning":{"effort":"low"})", kTaken},
    {R"("reasoning":{"summary":null})", kTaken},
    {R"("safety_identifier":"x")", kSaid},
    {R"("service_tier":"auto")", kSaid},
    {R"("store":false)", kTaken},
    {R"("stream":true)", kTaken},
    {R"("stream_options":{"include_obfuscation":true})", kSaid},
    {R"("temperature":0.5)", kTaken},
    {R"("text":{"format":{"type":"json_object"}})", kTaken},
    {R"("text":{"verbosity":"low"})", kSaid},
    {R"("tools":[{"type":"function","name":"f"}])", kTaken},
    {R"("tools":[{"type":"custom","name":"f"}])", kTaken},
    {R"("tools":[{"type":"web_search"}])", kSaid},
    {R"("tools":[{"type":"mcp","server_label":"x"}])", kSaid},
    {R"("tools":[{"type":"web_search"}],"tool_choice":{"type":"web_search"})",
     kRefused},
    {R"("top_logprobs":2)", kTaken},
    {R"("top_p":0.5)", kTaken},
    {R"("truncation":"auto")", kRefused},
    {R"("client_metadata":{"a":"b"})", kSaid},
    {R"("user":"u")", kSaid}};

constexpr Field kMessages[] = {
    {R"("cache_control":{"type":"ephemeral"})", kTaken},
    {R"("container":"c")", kSaid},
    {R"("diagnostics":{"previous_message_id":"msg_1"})", kTaken},
    {R"("inference_geo":"x")", kSaid},
    {R"("metadata":{"user_id":"u"})", kSaid},
    {R"("output_config":{"effort":"high"})", kTaken},
    {R"("output_config":{"format":{"type":"json_schema","schema":{}}})",
     kTaken},
    {R"("output_config":{"task_budget":{"total":1}})", kSaid},
    {R"("output_format":{"type":"json_schema","schema":{}})", kTaken},
    {R"("service_tier":"auto")", kSaid},
    {R"("speed":"fast")", kSaid},
    {R"("stop_sequences":["x"])", kTaken},
    {R"("stream":true)", kTaken},
    {R"("system":"x")", kTaken},
    {R"("temperature":0.5)", kTaken},
    {R"("top_k":5)", kTaken},
    {R"("top_p":0.5)", kTaken},
    {R"("thinking":{"type":"enabled","budget_tokens":9})", kTaken},
    {R"("thinking":{"type":"adaptive","display":"omitted"})", kTaken},
    {R"("thinking":{"type":"disabled"})", kTaken},
    {R"("tool_choice":{"type":"any"},"tools":[{"name":"f","input_schema":{}}])",
     kTaken},
    {R"("tool_choice":{"type":"auto","disable_parallel_tool_use":true})",
     kTaken},
    {R"("tools":[{"type":"web_search_20250305","name":"web_search"}])", kSaid},
    {R"("tools":[{"name":"f","defer_loading":true}])", kSaid},
    {R"("user_profile_id":"x")", kSaid},
    {R"("workspace_id":"x")", kSaid},
    {R"("billing_policy":{"a":1})", kSaid},
    {R"("compaction":{"a":1})", kSaid},
    {R"("context_management":{"edits":[{"type":"x"}]})", kSaid},
    {R"("fallback_credit_token":"x")", kSaid},
    {R"("fallbacks":["x"])", kSaid},
    {R"("mcp_servers":[{"a":1}])", kSaid},
    {R"("thread":{"a":1})", kSaid}};

constexpr Field kOllamaChat[] = {
    {R"("stream":false)", kTaken},
    {R"("format":"json")", kTaken},
    {R"("format":{"type":"object"})", kTaken},
    {R"("format":"yaml")", kRefused},
    {R"("keep_alive":"5m")", kSaid},
    {R"("tools":[{"type":"function","function":{"name":"f"}}])", kTaken},
    {R"("think":true)", kTaken},
    {R"("think":"low")", kTaken},
    {R"("logprobs":true)", kTaken},
    {R"("top_logprobs":3)", kTaken},
    {R"("options":{"num_ctx":4096})", kTaken},
    {R"("options":{"num_predict":5})", kTaken},
    {R"("options":{"seed":5})", kTaken},
    {R"("options":{"top_k":5})", kTaken},
    {R"("options":{"top_p":0.5})", kTaken},
    {R"("options":{"min_p":0.5})", kTaken},
    {R"("options":{"repeat_last_n":5})", kTaken},
    {R"("options":{"repeat_penalty":1.5})", kTaken},
    {R"("options":{"presence_penalty":1.5})", kTaken},
    {R"("options":{"frequency_penalty":1.5})", kTaken},
    {R"("options":{"temperature":0})", kTaken},
    {R"("options":{"stop":["x"]})", kTaken},
    {R"("options":{"numa":true})", kSaid},
    {R"("options":{"num_batch":5})", kSaid},
    {R"("options":{"num_gpu":5})", kSaid},
    {R"("options":{"num_keep":5})", kSaid},
    {R"("options":{"num_thread":5})", kSaid},
    {R"("options":{"mirostat":2})", kSaid},
    {R"("options":{"typical_p":0.5})", kSaid},
    {R"("options":{"tfs_z":0.5})", kSaid},
    {R"("options":{"penalize_newline":true})", kSaid}};

constexpr Field kOllamaGenerate[] = {
    {R"("suffix":"x")", kTaken},     {R"("system":"x")", kTaken},
    {R"("template":"x")", kRefused}, {R"("context":[1])", kRefused},
    {R"("raw":true)", kTaken},       {R"("images":["x"])", kRefused},
    {R"("keep_alive":0)", kSaid},    {R"("width":5)", kSaid}};

constexpr Field kLlama[] = {{R"("n_predict":5)", kTaken},
                            {R"("n_probs":3)", kTaken},
                            {R"("seed":5)", kTaken},
                            {R"("logit_bias":[[1,false]])", kTaken},
                            {R"("json_schema":{"type":"object"})", kTaken},
                            {R"("grammar":"root ::= \"x\"")", kTaken},
                            {R"("cache_prompt":true)", kSaid},
                            {R"("id_slot":0)", kSaid},
                            {R"("samplers":["top_k"])", kSaid},
                            {R"("mirostat":1)", kSaid},
                            {R"("return_progress":true)", kTaken},
                            {R"("stream":true)", kTaken},
                            {R"("lora":[{"id":0}])", kSaid}};

struct Walk {
  Dialect dialect;
  const char* path;
  const char* base;
  std::vector<Field> fields;
};

template <std::size_t kN>
std::vector<Field> List(const Field (&fields)[kN]) {
  return {fields, fields + kN};
}

std::vector<Walk> Walks() {
  return {{Dialect::kChat, "/v1/chat/completions",
           R"("messages":[{"role":"user","content":"x"}])", List(kChat)},
          {Dialect::kCompletions, "/v1/completions", R"("prompt":"x")",
           List(kCompletions)},
          {Dialect::kResponses, "/v1/responses", R"("input":"x")",
           List(kResponses)},
          {Dialect::kMessages, "/v1/messages",
           R"("max_tokens":1,"messages":[{"role":"user","content":"x"}])",
           List(kMessages)},
          {Dialect::kOllamaChat, "/api/chat",
           R"("messages":[{"role":"user","content":"x"}])", List(kOllamaChat)},
          {Dialect::kOllamaGenerate, "/api/generate", R"("prompt":"x")",
           List(kOllamaGenerate)},
          {Dialect::kLlamaCompletion, "/completion", R"("prompt":"x")",
           List(kLlama)}};
}

TEST(Fields, NothingIsDroppedInSilence) {
  for (const Walk& walk : Walks()) {
    const auto parse = [&](const std::string& more) {
      return ParseRequest(walk.dialect, walk.path, "",
                          "{" + std::string(walk.base) + more + "}", {});
    };
    const auto base = parse("");
    ASSERT_TRUE(base.ok()) << base.error().message;
    ASSERT_TRUE(base->ignored.empty());
    const std::string before = Seen(*base);
    for (const Field& field : walk.fields) {
      const std::string json = field.json;
      SCOPED_TRACE(std::string(walk.path) + " " + json);
      const auto with = parse("," + json);
      // Of several, the first is the one in question.
      const std::string name = json.substr(1, json.find('"', 1) - 1);
      if (field.fate == kRefused) {
        ASSERT_FALSE(with.ok());
        const WireError& error = with.error();
        EXPECT_GE(error.status, 400);
        EXPECT_NE((error.param + error.message)
                      .find(name == "tools"  ? "tool_choice"
                            : name == "echo" ? "logprobs"
                                             : name),
                  std::string::npos)
            << error.param << ": " << error.message;
        continue;
      }
      ASSERT_TRUE(with.ok()) << with.error().message;
      if (field.fate == kTaken) {
        EXPECT_NE(Seen(*with), before);
      } else {
        EXPECT_EQ(Seen(*with), before);
        ASSERT_FALSE(with->ignored.empty());
        EXPECT_EQ(with->ignored[0].rfind(name, 0), 0u) << with->ignored[0];
      }
    }
  }
}

// docs/server-fields.md has every one of them.
TEST(Fields, AreAllInTheDocumentation) {
  std::ifstream in(std::string(HEARTH_TEST_DATA) +
                   "/../../docs/server-fields.md");
  std::stringstream text;
  text << in.rdbuf();
  for (const Walk& walk : Walks()) {
    for (const Field& field : walk.fields) {
      const std::string json = field.json;
      const std::string name = json.substr(1, json.find('"', 1) - 1);
      if (name == "never_heard_of") continue;
      EXPECT_NE(text.str().find("`" + name + "`"), std::string::npos) << name;
    }
  }
}

}  // namespace
}  // namespace hearth::serve
