// What requests become, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "serve/wire/common/marked_text.h"
#include "serve/wire/json/body_json.h"
#include "serve/wire/request.h"
#include "serve/wire/store/response_store.h"

namespace hearth::serve {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

Parsed<WireRequest> Parse(const std::string& path, const std::string& body,
                          const ParseContext& context = {}) {
  return ParseRequest(*DialectOf(path), path, "", body, context);
}

Parsed<WireRequest> Chat(const std::string& messages,
                         const std::string& more = "") {
  return Parse("/v1/chat/completions",
               R"({"messages":)" + messages + more + "}");
}

std::string Messages(const Parsed<WireRequest>& request) {
  return request.ok() ? request->dialogue.messages_json
                      : "refused: " + request.error().message;
}

std::string Param(const Parsed<WireRequest>& request) {
  return request.ok() ? "taken" : request.error().param;
}

TEST(ChatRequest, FormsOfOneTurnAreOne) {
  const std::string plain = Messages(Chat(
      R"([{"role":"system","content":"a\nb"},{"role":"user","content":"u"},
      {"role":"assistant","content":"","tool_calls":[{"id":"c","type":"function",
      "function":{"name":"f","arguments":"{\"b\":1,\"a\":[]}"}}]},
      {"role":"tool","tool_call_id":"c","content":"r"}])"));
  EXPECT_EQ(plain,
            R"([{"role":"system","content":"a\nb"},{"role":"user",)"
            R"("content":"u"},{"role":"assistant","content":"","tool_calls":)"
            R"([{"id":"c","type":"function","function":{"name":"f",)"
            R"("arguments":{"b":1,"a":[]}}}]},{"role":"tool","content":"r",)"
            R"("tool_call_id":"c","name":"f"}])");
  EXPECT_EQ(plain,
            Messages(Chat(
                R"([{"role":"developer","content":[{"type":"text","text":"a"},
          {"type":"text","text":"b"}]},{"role":"user","content":["u"]},
          {"role":"assistant","content":null,"tool_calls":[{"id":"c",
          "function":{"arguments":{"b":1,"a":[]},"name":"f"}}]},
          {"role":"tool","tool_call_id":"c","content":[{"type":"text",
          "text":"r"}],"name":"f"}])")));
}

TEST(ChatRequest, RefusesByName) {
  const std::string user = R"([{"role":"user","content":"x"}])";
  EXPECT_EQ(Param(Chat("[]")), "messages");
  EXPECT_EQ(Param(Chat(R"([{"role":"robot","content":""}])")),
            "messages[0].role");
  EXPECT_EQ(Param(Chat(R"([{"role":"user","content":[{"type":"image_url",
            "image_url":{}}]}])")),
            "messages[0].content[0]");
  EXPECT_EQ(Param(Chat(R"([{"role":"assistant","tool_calls":[{"id":"c",
            "function":{"name":"f","arguments":"{"}}]}])")),
            "messages[0].tool_calls[0].function.arguments");
  EXPECT_EQ(Param(Chat(user, R"(,"n":9)")), "n");
  EXPECT_EQ(Param(Chat(user, R"(,"top_logprobs":21,"logprobs":true)")),
            "top_logprobs");
  EXPECT_EQ(Param(Chat(user, R"(,"stop":[1])")), "stop");
  EXPECT_EQ(Param(Chat(
                user, R"(,"stop":[)" +
                          []() {
                            std::string many;
                            for (int i = 0; i < 17; ++i) many += "\"x\",";
                            many.back() = ']';
                            return many;
                          }())),
            "stop");
  EXPECT_EQ(Param(Chat(user, R"(,"logit_bias":{"x":1})")), "logit_bias");
  EXPECT_EQ(Param(Chat(user, R"(,"tool_choice":"required")")), "tool_choice");
  EXPECT_EQ(Param(Chat(user, R"(,"temperature":"hot")")), "temperature");
  EXPECT_EQ(Param(Chat(user, R"(,"response_format":{"type":"xml"})")),
            "response_format.type");
  std::string tools = R"(,"tools":[)";
  for (int i = 0; i < 513; ++i) {
    tools += R"({"type":"function","function":{"name":"f)" + std::to_string(i) +
             "\"}},";
  }
  tools.back() = ']';
  EXPECT_EQ(Param(Chat(user, tools)), "tools[512].function");
  EXPECT_EQ(Chat(user, R"(,"n":9)").error().status, 400);
}

TEST(ChatRequest, ToolsAndTheChoiceAmongThem) {
  const std::string user = R"([{"role":"user","content":"x"}])";
  const std::string tools =
      R"(,"tools":[{"type":"function","function":{"strict":true,
      "parameters":{"z":1,"a":2},"name":"f"}},{"type":"custom",
      "custom":{"name":"g","description":"d","format":{"type":"grammar"}}}])";
  const auto all = Chat(user, tools);
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(all->dialogue.tools_json,
            R"([{"type":"function","function":{"name":"f","description":"",)"
            R"("parameters":{"z":1,"a":2}}},{"type":"function","function":)"
            R"({"name":"g","description":"d","parameters":{"type":"object",)"
            R"("properties":{"input":{"type":"string"}},"required":)"
            R"(["input"]}}}])");
  EXPECT_TRUE(all->form.strict_tools);
  EXPECT_TRUE(all->tools.at("g").custom);
  EXPECT_THAT(all->ignored, ElementsAre("tools[1].custom.format"));
  EXPECT_EQ(all->form.tool_use, ToolUse::kAuto);
  const auto named =
      Chat(user,
           tools + R"(,"tool_choice":{"type":"custom","custom":{"name":"g"}})");
  EXPECT_EQ(named->form.tool_use, ToolUse::kNamed);
  EXPECT_THAT(named->form.allowed_tools, ElementsAre("g"));
  EXPECT_EQ(Param(Chat(user, tools + R"(,"tool_choice":{"type":"function",
                              "function":{"name":"h"}})")),
            "tool_choice");
  EXPECT_EQ(Chat(user)->form.tool_use, ToolUse::kNone);
  ParseContext bare;
  bare.has_tool_format = false;
  EXPECT_EQ(Param(Parse("/v1/chat/completions",
                        R"({"messages":)" + user + tools + "}", bare)),
            "tools");
}

TEST(ChatRequest, VariablesGoWhereTheTemplateReadsThem) {
  const std::string body =
      R"({"messages":[{"role":"user","content":"x"}],"reasoning_effort":"low",
      "enable_thinking":false,"chat_template_kwargs":{"enable_thinking":true,
      "other":1}})";
  ParseContext context;
  context.reads = [](std::string_view name) {
    return name == "enable_thinking" || name == "preserve_thinking";
  };
  const auto request = Parse("/v1/chat/completions", body, context);
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->dialogue.kwargs_json,
            R"({"enable_thinking":true,"preserve_thinking":true})");
  EXPECT_THAT(request->ignored,
              ElementsAre("chat_template_kwargs.other", "reasoning_effort"));
  EXPECT_TRUE(request->form.thoughts) << "as the template is told";
}

TEST(Request, WithoutThoughtsNoneBeginsInAFormEither) {
  const auto thoughts = [](const std::string& path, const std::string& body,
                           bool reads) {
    ParseContext context;
    context.reads = [=](std::string_view) { return reads; };
    return Parse(path, body, context)->form.thoughts;
  };
  const std::string said = R"({"messages":[{"role":"user","content":"x"}],)";
  for (const bool reads : {true, false}) {
    EXPECT_FALSE(thoughts("/v1/chat/completions",
                          said + R"("enable_thinking":false})", reads));
    EXPECT_TRUE(thoughts("/v1/chat/completions",
                         said + R"("reasoning_effort":"low"})", reads));
    EXPECT_FALSE(thoughts(
        "/v1/messages",
        said + R"("max_tokens":9,"thinking":{"type":"disabled"}})", reads));
    EXPECT_FALSE(thoughts("/v1/responses",
                          R"({"input":"x","reasoning":{"effort":"none"}})",
                          reads));
  }
}

TEST(Request, TheModelIsServedUnderEveryNameOrOne) {
  const std::string body =
      R"({"model":"gpt","messages":[{"role":"user","content":"x"}]})";
  ParseContext context = {.served_model = "true-model"};
  const auto lax = Parse("/v1/chat/completions", body, context);
  ASSERT_TRUE(lax.ok());
  EXPECT_THAT(lax->ignored, ElementsAre("model"));
  context.strict_model = true;
  const auto strict = Parse("/v1/chat/completions", body, context);
  ASSERT_FALSE(strict.ok());
  EXPECT_EQ(strict.error().status, 404);
  EXPECT_THAT(strict.error().message, HasSubstr("true-model"));
}

TEST(MessagesRequest, BlocksBecomeMessagesAndBreakpointsAreCounted) {
  const auto request = Parse("/v1/messages",
                             R"({"max_tokens":5,"system":[{"type":"text",
      "text":"x-anthropic-billing-header: v"},{"type":"text","text":"s",
      "cache_control":{"type":"ephemeral","ttl":"1h"}}],"messages":[
      {"role":"user","content":[{"type":"text","text":"a"},
        {"type":"text","text":"b"}]},
      {"role":"assistant","content":[{"type":"thinking","thinking":"t",
        "signature":"x"},{"type":"text","text":"c"},{"type":"tool_use",
        "id":"i","name":"f","input":{"z":1}}]},
      {"role":"user","content":[{"type":"tool_result","tool_use_id":"i",
        "content":[{"type":"text","text":"r"}],"is_error":true},
        {"type":"text","text":"d","cache_control":{"type":"ephemeral"}}]}]})");
  EXPECT_EQ(Messages(request),
            R"([{"role":"system","content":"s"},{"role":"user","content":)"
            R"("a\nb"},{"role":"assistant","content":"c",)"
            R"("reasoning_content":"t","tool_calls":[{"id":"i","type":)"
            R"("function","function":{"name":"f","arguments":{"z":1}}}]},)"
            R"({"role":"tool","content":"r","tool_call_id":"i","name":"f"},)"
            R"({"role":"user","content":"d"}])");
  EXPECT_THAT(request->breakpoints, ElementsAre(1, 5));
  EXPECT_EQ(request->breakpoint_ttl_s, 3600);
  EXPECT_THAT(request->ignored,
              ElementsAre("system[0]", "messages[2].content[0].is_error"));
}

TEST(MessagesRequest, RefusesByName) {
  const auto with = [](const std::string& content, const std::string& more) {
    return Parse("/v1/messages", R"({"messages":[{"role":"user","content":)" +
                                     content + "}]" + more + "}");
  };
  EXPECT_EQ(Param(with(R"("x")", "")), "max_tokens");
  EXPECT_EQ(
      Param(with(R"([{"type":"image","source":{}}])", R"(,"max_tokens":1)")),
      "messages[0].content[0]");
  std::string five = "[";
  for (int i = 0; i < 5; ++i) {
    five += R"({"type":"text","text":"x","cache_control":)"
            R"({"type":"ephemeral"}},)";
  }
  five.back() = ']';
  EXPECT_EQ(Param(with(five, R"(,"max_tokens":1)")),
            "messages[0].content[4].cache_control");
  EXPECT_TRUE(Parse("/v1/messages/count_tokens",
                    R"({"messages":[{"role":"user","content":"x"}]})")
                  ->count_only);
}

TEST(MessagesRequest, ReasoningComesBackFromItsSignature) {
  const Vault vault(Vault::Key{3});
  for (const Vault* key : {static_cast<const Vault*>(nullptr), &vault}) {
    ResponseStoreOptions options;
    if (key != nullptr) {
      options.vault = std::make_shared<const Vault>(Vault::Key{3});
    }
    const auto store = ResponseStore::Open(options);
    ParseContext context = {.store = store->get()};
    const auto parse = [&](const std::string& signature) {
      return Parse("/v1/messages",
                   R"({"max_tokens":1,"messages":[{"role":"assistant",
                   "content":[{"type":"thinking","thinking":"",
                   "signature":")" +
                       signature + R"("}]}]})",
                   context);
    };
    EXPECT_THAT(Messages(parse(MarkText("deep \xc3\xa9", key))),
                HasSubstr("deep \xc3\xa9"));
    const auto foreign = parse("EqQBCkYIB");
    EXPECT_THAT(foreign->ignored, ElementsAre("messages[0].content[0]"));
    const auto damaged = parse("h1.k.AAAA");
    EXPECT_THAT(damaged->ignored, ElementsAre("messages[0].content[0]"));
  }
}

TEST(ResponsesRequest, ItemsOfOneAnswerAreOneTurn) {
  const auto request =
      Parse("/v1/responses",
            R"({"instructions":"i","input":[{"role":"user","content":"u"},
      {"type":"reasoning","id":"rs_a_0","summary":[{"type":"summary_text",
      "text":"t"}]},{"type":"message","role":"assistant","content":
      [{"type":"output_text","text":"c","annotations":[]}]},
      {"type":"function_call","call_id":"k","name":"f","namespace":"ns",
      "arguments":"{\"a\": 1}"},{"type":"function_call_output","call_id":"k",
      "output":"r"},{"type":"custom_tool_call","call_id":"l","name":"p",
      "input":"x"}]})");
  EXPECT_EQ(Messages(request),
            R"([{"role":"system","content":"i"},{"role":"user","content":)"
            R"("u"},{"role":"assistant","content":"c","reasoning_content":)"
            R"("t","tool_calls":[{"id":"k","type":"function","function":)"
            R"({"name":"ns__f","arguments":{"a":1}}}]},{"role":"tool",)"
            R"("content":"r","tool_call_id":"k","name":"ns__f"},{"role":)"
            R"("assistant","content":"","tool_calls":[{"id":"l","type":)"
            R"("function","function":{"name":"p","arguments":)"
            R"({"input":"x"}}}]}])");
  EXPECT_EQ(Param(Parse("/v1/responses", R"({"input":[{"type":"mcp_call"}]})")),
            "input[0].type");
}

TEST(ResponsesRequest, EarlierResponsesAreReadBack) {
  const auto store = ResponseStore::Open({});
  (void)(*store)->Put(
      StoredResponse{
          .id = "resp_a",
          .created_s = 1,
          .input_json = R"([{"role":"user","content":"one","id":"in_a_i0"}])",
          .response_json =
              R"({"output":[{"type":"reasoning","id":"rs_a_0","summary":[],
              "content":[{"type":"reasoning_text","text":"t"}]},{"type":
              "message","id":"msg_a_1","role":"assistant","content":[{"type":
              "output_text","text":"1"}]}]})"},
      1);
  (void)(*store)->Put(
      StoredResponse{.id = "resp_b",
                     .created_s = 2,
                     .previous_id = "resp_a",
                     .input_json = R"([{"role":"user","content":"two"}])",
                     .response_json = R"({"output":[]})"},
      2);
  const ParseContext context = {.store = store->get(), .now_s = 3};
  const auto chain =
      Parse("/v1/responses",
            R"({"previous_response_id":"resp_b","input":"three"})", context);
  EXPECT_EQ(Messages(chain),
            R"([{"role":"user","content":"one"},{"role":"assistant",)"
            R"("content":"1","reasoning_content":"t"},{"role":"user",)"
            R"("content":"two"},{"role":"user","content":"three"}])");
  const auto reference =
      Parse("/v1/responses",
            R"({"input":[{"role":"user","content":"q"},{"type":"item_reference",
      "id":"rs_a_0"},{"id":"msg_a_1"}]})",
            context);
  EXPECT_THAT(Messages(reference), HasSubstr(R"("reasoning_content":"t")"));
  EXPECT_THAT(Messages(reference), HasSubstr(R"("content":"1")"));
  const auto gone =
      Parse("/v1/responses", R"({"previous_response_id":"resp_x"})", context);
  EXPECT_EQ(gone.error().status, 404);
  EXPECT_THAT(gone.error().message, HasSubstr("resp_x"));
  (*store)->Delete("resp_a", "");
  EXPECT_EQ(Parse("/v1/responses",
                  R"({"previous_response_id":"resp_b","input":"x"})", context)
                .error()
                .status,
            404);
}

TEST(OllamaRequest, EmptyAsksForTheModelAlone) {
  EXPECT_TRUE(Parse("/api/chat", R"({"model":"m"})")->load_only);
  EXPECT_TRUE(Parse("/api/generate", R"({"model":"m"})")->load_only);
  const auto fill =
      Parse("/api/generate", R"({"prompt":"a","suffix":"b","raw":false})");
  EXPECT_TRUE(fill->raw);
  EXPECT_THAT(fill->prompts, ElementsAre("a"));
  EXPECT_EQ(fill->suffix, "b");
  EXPECT_FALSE(Parse("/api/chat", R"({"options":{"seed":-1}})")
                   ->sampling.seed.has_value());
}

TEST(CompletionRequest, PromptsAreTextsOrIds) {
  const auto parse = [](const std::string& prompt) {
    return Parse("/v1/completions", R"({"prompt":)" + prompt + "}");
  };
  EXPECT_THAT(parse(R"("a")")->prompts, ElementsAre("a"));
  EXPECT_THAT(parse("[1,2]")->prompt_ids, ElementsAre(ElementsAre(1, 2)));
  EXPECT_EQ(parse("[[1],[2,3]]")->n_choices(), 2);
  EXPECT_EQ(Param(parse(R"(["a",[1]])")), "prompt");
  EXPECT_EQ(Param(parse("[-1]")), "prompt");
  EXPECT_EQ(Param(parse("[]")), "prompt");
  EXPECT_EQ(Param(Parse("/v1/completions", "{}")), "prompt");
  EXPECT_EQ(*parse(R"("a")")->max_tokens, 16);
  const auto infill =
      Parse("/infill", R"({"input_prefix":"a","input_suffix":"b","prompt":"c",
      "input_extra":[{"filename":"f","text":"t"}]})");
  EXPECT_EQ(infill->middle, "c");
  EXPECT_EQ(infill->context_files.at(0).first, "f");
}

TEST(Request, QueriesHaveNoEffectAndAreNamed) {
  const auto request = ParseRequest(
      Dialect::kChat, "/v1/chat/completions", "beta=true&api-version=1",
      R"({"messages":[{"role":"user","content":"x"}]})", {});
  EXPECT_THAT(request->ignored, ElementsAre("?api-version"));
}

}  // namespace
}  // namespace hearth::serve
