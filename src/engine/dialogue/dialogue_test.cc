#include "hearth/dialogue.h"

#include <gtest/gtest.h>

#include "chat/ordered_json.h"
#include "testing/model_paths.h"

namespace hearth {
namespace {

constexpr const char* kTools = R"([{"type": "function", "function": {
  "name": "pick", "parameters": {"type": "object", "properties": {
  "n": {"type": "integer", "minimum": 0, "maximum": 9},
  "who": {"type": "string", "enum": ["a", "b"]}}, "required": ["n", "who"]}}}])";
constexpr const char* kHello = R"([{"role": "user", "content": "Hello"}])";

class DialogueOfASmallModel : public ::testing::Test {
 protected:
  std::unique_ptr<Dialogue> OpenWith(const std::string& name) {
    engine_ =
        Engine::Open({.model_path = kHfQwen2, .context_tokens = 2048}).value();
    auto dialogue = Dialogue::Open(
        *engine_, kTestData + "/chat/templates/" + name + ".jinja");
    EXPECT_TRUE(dialogue.ok()) << dialogue.error().message;
    return std::move(*dialogue);
  }

  std::unique_ptr<Engine> engine_;
};

TEST_F(DialogueOfASmallModel, RendersAndSaysWhereMessagesEnd) {
  const auto dialogue = OpenWith("Qwen-Qwen3-0.6B");
  EXPECT_EQ(dialogue->tool_format(), "hermes");
  EXPECT_TRUE(dialogue->Reads("enable_thinking"));
  const auto prompt = dialogue->Render(
      {.messages_json = R"([{"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Hello"}]}])"});
  ASSERT_TRUE(prompt.ok()) << prompt.error().message;
  EXPECT_EQ(prompt->text,
            "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHello"
            "<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_FALSE(prompt->in_reasoning);
  ASSERT_EQ(prompt->message_ends.size(), 2u);
  const auto& codec = engine_->codec();
  const auto upto = [&](int n) {
    return codec
        .Decode(std::span(prompt->ids).first(static_cast<std::size_t>(n)))
        .value();
  };
  EXPECT_EQ(upto(prompt->message_ends[0]),
            "<|im_start|>system\nBe brief.<|im_end|>\n");
  EXPECT_EQ(upto(prompt->message_ends[1]),
            prompt->text.substr(0, prompt->text.find("<|im_start|>assistant")));
}

TEST_F(DialogueOfASmallModel, ASystemMessageThatATemplateRefusesIsTheUsers) {
  const auto dialogue = OpenWith("mistralai-Ministral-3-14B-Reasoning-2512");
  const auto prompt =
      dialogue->Render({.messages_json = R"([{"role": "user", "content": "One"},
        {"role": "assistant", "content": "Two"},
        {"role": "system", "content": "Three"},
        {"role": "user", "content": "Four"}])"});
  ASSERT_TRUE(prompt.ok()) << prompt.error().message;
  const std::size_t two = prompt->text.find("Two");
  const std::size_t three = prompt->text.find("Three");
  ASSERT_NE(three, std::string::npos) << prompt->text;
  EXPECT_LT(two, three);
  EXPECT_LT(three, prompt->text.find("Four"));
}

TEST_F(DialogueOfASmallModel, ReadsTheAnswerOfAnEngine) {
  const auto dialogue = OpenWith("Qwen-Qwen3-0.6B");
  const DialogueRequest request = {.messages_json = kHello,
                                   .tools_json = kTools};
  const auto prompt = dialogue->Render(request).value();
  auto reader = dialogue->Reader(request, {}, prompt).value();
  std::vector<AnswerEvent> events;
  const auto take = [&](std::vector<AnswerEvent> more) {
    for (AnswerEvent& event : more) events.push_back(std::move(event));
  };
  const std::string answer =
      "<think>\nHm.\n</think>\n\nYes.\n<tool_call>\n{\"name\": \"pick\", "
      "\"arguments\": {\"n\": 1}}\n</tool_call>";
  const auto ids = engine_->codec().Encode(answer, true).value();
  std::string text;
  for (const std::int32_t id : ids) {
    text = engine_->codec().Decode(std::span(&id, 1)).value();
    take(reader->Feed({.id = id, .text = text}));
  }
  take(reader->Finish());
  std::string reasoning, content, arguments, name;
  for (const AnswerEvent& event : events) {
    using Kind = AnswerEvent::Kind;
    if (event.kind == Kind::kReasoning) reasoning += event.text;
    if (event.kind == Kind::kText) content += event.text;
    if (event.kind == Kind::kCallBegin) name += event.text;
    if (event.kind == Kind::kCallArguments) arguments += event.text;
    EXPECT_NE(event.kind, Kind::kFault) << event.text;
  }
  EXPECT_EQ(reasoning, "Hm.");
  EXPECT_EQ(content, "Yes.");
  EXPECT_EQ(name, "pick");
  EXPECT_EQ(arguments, "{\"n\": 1}");
}

// A model of random weights, held to a call after three tokens of thought.
TEST_F(DialogueOfASmallModel, AConstrainedAnswerIsTheCallThatWasAskedFor) {
  const auto dialogue = OpenWith("Qwen-Qwen3-0.6B");
  const DialogueRequest request = {.messages_json = kHello,
                                   .tools_json = kTools};
  const AnswerForm form = {.tool_use = ToolUse::kRequired,
                           .parallel_calls = false,
                           .reasoning_tokens_max = 3};
  const auto prompt = dialogue->Render(request).value();
  std::vector<std::string> notes;
  const auto make = dialogue->Constraint(request, form, prompt, notes);
  ASSERT_TRUE(make.ok()) << make.error().message;
  auto session = engine_->NewSession().value();
  ASSERT_TRUE(session->Sync(prompt.ids, nullptr).ok());
  auto reader = dialogue->Reader(request, form, prompt).value();
  GenerateOptions options{.n_tokens_max = 400};
  options.constraint = *make;
  std::vector<AnswerEvent> events;
  const auto report = session->Generate(options, [&](const Token& token) {
    for (AnswerEvent& event : reader->Feed(token)) events.push_back(event);
    return true;
  });
  ASSERT_TRUE(report.ok()) << report.error().message;
  for (AnswerEvent& event : reader->Finish()) events.push_back(event);
  std::string name, arguments;
  for (const AnswerEvent& event : events) {
    using Kind = AnswerEvent::Kind;
    EXPECT_NE(event.kind, Kind::kFault) << event.text << "\n" << report->text;
    EXPECT_NE(event.kind, Kind::kText) << report->text;
    if (event.kind == Kind::kCallBegin) name += event.text;
    if (event.kind == Kind::kCallArguments) arguments += event.text;
  }
  EXPECT_EQ(name, "pick") << report->text;
  const auto json = ParseOrderedJson(arguments, "arguments");
  ASSERT_TRUE(json.ok()) << arguments;
  EXPECT_TRUE(json->contains("n") && json->contains("who")) << arguments;
}

}  // namespace
}  // namespace hearth
