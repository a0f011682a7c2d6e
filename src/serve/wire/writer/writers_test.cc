#include <gmock/gmock.h>

#include "serve/wire/common/marked_text.h"
#include "serve/wire/messages/notes.h"
#include "serve/wire/responses/notes.h"
#include "serve/wire/testing/written.h"
#include "serve/wire/writer/ids.h"

namespace hearth::serve {
namespace {

using testing::HasSubstr;

OrderedJson WholeWith(WireRequest request, const Usage& usage) {
  const ScriptedAnswer answer = {
      .events = {{.kind = AnswerEvent::Kind::kText, .text = "hi"}}};
  return OrderedJson::parse(Write(request, {answer}, usage).bytes);
}

// P12: what each dialect's fields say adds up to the prompt.
TEST(Usage, IsPromptInEveryDialect) {
  std::mt19937 random(1);
  for (int i = 0; i < 40; ++i) {
    Usage usage;
    usage.reused = static_cast<int>(random() % 5000);
    usage.computed = 1 + static_cast<int>(random() % 5000);
    usage.prompt = usage.reused + usage.computed;
    usage.written = static_cast<int>(random() % 100);
    // Also more than was computed: a breakpoint behind what was reused.
    usage.computed_to_breakpoint = static_cast<int>(random() % 6000);
    usage.completion = static_cast<int>(random() % 100);
    const auto whole = [&](Dialect dialect) {
      return WholeWith({.dialect = dialect}, usage);
    };
    const auto chat = whole(Dialect::kChat)["usage"];
    EXPECT_EQ(chat["prompt_tokens"], usage.prompt);
    EXPECT_EQ(chat["prompt_tokens_details"]["cached_tokens"], usage.reused);
    EXPECT_EQ(chat["total_tokens"], usage.prompt + usage.completion);
    EXPECT_EQ(whole(Dialect::kCompletions)["usage"], chat);
    const auto responses = whole(Dialect::kResponses)["usage"];
    EXPECT_EQ(responses["input_tokens"], usage.prompt);
    EXPECT_EQ(responses["input_tokens_details"]["cached_tokens"], usage.reused);
    const auto messages = whole(Dialect::kMessages)["usage"];
    EXPECT_EQ(messages["input_tokens"].get<int>() +
                  messages["cache_creation_input_tokens"].get<int>() +
                  messages["cache_read_input_tokens"].get<int>(),
              usage.prompt);
    EXPECT_GE(messages["input_tokens"].get<int>(), 0);
    EXPECT_EQ(messages["cache_read_input_tokens"], usage.reused);
    EXPECT_EQ(messages["output_tokens"], usage.completion);
    EXPECT_EQ(whole(Dialect::kOllamaChat)["prompt_eval_count"], usage.prompt);
    const auto timings = whole(Dialect::kLlamaCompletion)["timings"];
    EXPECT_EQ(timings["prompt_n"].get<int>() + timings["cache_n"].get<int>(),
              usage.prompt);
    for (const Dialect dialect :
         {Dialect::kChat, Dialect::kResponses, Dialect::kMessages,
          Dialect::kOllamaGenerate, Dialect::kLlamaCompletion}) {
      const auto hearth = whole(dialect)["hearth"];
      EXPECT_EQ(hearth["reused"].get<int>() + hearth["computed"].get<int>(),
                hearth["prompt"].get<int>());
    }
  }
}

TEST(CallIds, AreOfTheRequestAndTheCall) {
  EXPECT_EQ(CallId("r1", 0, 0, false), CallId("r1", 0, 0, false));
  EXPECT_NE(CallId("r1", 0, 0, false), CallId("r1", 0, 1, false));
  EXPECT_NE(CallId("r1", 0, 0, false), CallId("r1", 1, 0, false));
  EXPECT_NE(CallId("r1", 0, 0, false), CallId("r2", 0, 0, false));
  EXPECT_EQ(CallId("r1", 0, 0, false).rfind("call_", 0), 0u);
  const std::string mistral = CallId("r1", 0, 0, true);
  EXPECT_EQ(mistral.size(), 9u);
  EXPECT_TRUE(std::all_of(mistral.begin(), mistral.end(),
                          [](unsigned char c) { return std::isalnum(c); }));
}

TEST(Faults, InMidStreamHaveTheFormOfTheDialect) {
  const WireError error = {
      .status = 500, .type = "server_error", .message = "lost"};
  const auto fail = [&](Dialect dialect) {
    const WireRequest request = {.dialect = dialect, .stream = true};
    const auto writer = MakeWriter(request, {.id = "m"}, "r1", 1);
    const std::string begin = writer->Begin({}, {});
    return std::pair(begin, writer->Fail(error));
  };
  const auto chat = ReadSse(fail(Dialect::kChat).second);
  ASSERT_EQ(chat.size(), 1u);
  EXPECT_EQ(chat[0].data["error"]["message"], "lost");
  const auto messages = ReadSse(fail(Dialect::kMessages).second);
  EXPECT_EQ(messages[0].event, "error");
  EXPECT_EQ(messages[0].data["error"]["type"], "server_error");
  const auto [begin, failed] = fail(Dialect::kResponses);
  const auto responses = ReadSse(begin + failed);
  ASSERT_EQ(responses.size(), 3u);
  EXPECT_EQ(responses[2].event, "response.failed");
  EXPECT_EQ(responses[2].data["sequence_number"], 2);
  EXPECT_EQ(responses[2].data["response"]["error"]["message"], "lost");
  EXPECT_EQ(fail(Dialect::kOllamaChat).second, "{\"error\":\"lost\"}\n");
}

TEST(Pings, AreCountedByEachClient) {
  const auto ping = [](Dialect dialect, bool progress) {
    const WireRequest request = {
        .dialect = dialect, .stream = true, .return_progress = progress};
    const auto writer = MakeWriter(request, {.id = "m"}, "r1", 1);
    (void)writer->Begin({.prompt = 16010, .computed = 16010}, {});
    return writer->Ping(4096, 16010, 8100);
  };
  EXPECT_EQ(ping(Dialect::kChat, false), ": prefill 4096/16010\n\n");
  const auto chunk = ReadSse(ping(Dialect::kChat, true))[0].data;
  EXPECT_TRUE(chunk["choices"].empty());
  EXPECT_EQ(chunk["prompt_progress"].dump(),
            R"({"total":16010,"cache":0,"processed":4096,"time_ms":8100.0})");
  EXPECT_EQ(ReadSse(ping(Dialect::kMessages, false))[0].event, "ping");
  EXPECT_EQ(ReadSse(ping(Dialect::kResponses, false))[0].event,
            "response.in_progress");
  EXPECT_EQ(ReadLines(ping(Dialect::kOllamaChat, false))[0]["done"], false);
  const WireRequest whole = {.dialect = Dialect::kChat};
  EXPECT_EQ(MakeWriter(whole, {}, "r", 1)->Ping(1, 2, 3), " ");
}

ScriptedAnswer Thinking() {
  return {.events = {{.kind = AnswerEvent::Kind::kReasoning, .text = "hm"},
                     {.kind = AnswerEvent::Kind::kText, .text = "yes"}}};
}

TEST(MessagesWriter, OmittedThinkingIsCarriedByItsSignature) {
  auto notes = std::make_shared<MessagesNotes>();
  notes->omit_thinking = true;
  WireRequest request = {.dialect = Dialect::kMessages};
  request.notes = notes;
  const auto whole = OrderedJson::parse(Write(request, {Thinking()}, {}).bytes);
  EXPECT_EQ(whole["content"][0]["thinking"], "");
  EXPECT_EQ(
      UnmarkText(whole["content"][0]["signature"].get<std::string>(), nullptr),
      "hm");
}

TEST(MessagesWriter, SaysWhyTheCacheWasMissed) {
  auto notes = std::make_shared<MessagesNotes>();
  notes->diagnose = true;
  WireRequest request = {.dialect = Dialect::kMessages, .stream = true};
  request.notes = notes;
  const auto writer = MakeWriter(request, {.id = "m"}, "r1", 1);
  const auto events = ReadSse(writer->Begin(
      {}, {.cache_miss_reason = R"({"type":"previous_message_not_found"})"}));
  EXPECT_EQ(
      events[0].data["message"]["diagnostics"]["cache_miss_reason"]["type"],
      "previous_message_not_found");
}

TEST(ResponsesWriter, ReasoningIsShownAsItWasAskedFor) {
  auto notes = std::make_shared<ResponsesNotes>();
  notes->summary = false;
  notes->encrypted = true;
  notes->store = false;
  WireRequest request = {.dialect = Dialect::kResponses};
  request.notes = notes;
  const WrittenAnswer written = Write(request, {Thinking()}, {});
  const auto item = OrderedJson::parse(written.bytes)["output"][0];
  EXPECT_TRUE(item["summary"].empty());
  EXPECT_EQ(item["content"][0]["text"], "hm");
  const std::string carried = item["encrypted_content"];
  EXPECT_EQ(carried.rfind("h1.", 0), 0u);
  EXPECT_EQ(UnmarkText(carried, nullptr), "hm");
  EXPECT_FALSE(written.record.has_value());
}

TEST(CompletionsWriter, RepeatsThePromptAndCountsItsBytes) {
  WireRequest request = {.dialect = Dialect::kCompletions};
  request.echo = request.logprobs = true;
  const auto writer = MakeWriter(request, {.id = "m"}, "r1", 1);
  writer->SetEcho(0, "Once");
  (void)writer->Begin({}, {});
  (void)writer->Event(0, {.text = " up"},
                      {{.token = " up", .logprob = -0.5, .top = {{"x", -1}}}});
  (void)writer->FinishChoice(0, FinishReason::kLength, "");
  const auto choice = OrderedJson::parse(writer->End({}, {}))["choices"][0];
  EXPECT_EQ(choice["text"], "Once up");
  EXPECT_EQ(choice["logprobs"].dump(),
            R"({"tokens":[" up"],"token_logprobs":[-0.5],)"
            R"("top_logprobs":[{"x":-1.0}],"text_offset":[4]})");
}

TEST(Parse, FaultsOfAnAnswerAreNamed) {
  WireRequest request = {.dialect = Dialect::kChat};
  const auto writer = MakeWriter(request, {.id = "m"}, "r1", 1);
  (void)writer->Begin({}, {});
  (void)writer->Event(
      0, {.kind = AnswerEvent::Kind::kFault, .text = "no end of a call"}, {});
  (void)writer->FinishChoice(0, FinishReason::kStop, "");
  EXPECT_THAT(writer->End({}, {}),
              HasSubstr(R"("parse_fault":"no end of a call")"));
}

}  // namespace
}  // namespace hearth::serve
