#include "hearth/dialogue.h"

#include <gtest/gtest.h>

#include <fstream>

#include "chat/ordered_json.h"
#include "testing/model_paths.h"
#include "testing/temp_dir.h"

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
        {"role": "user", "content": [{"type": "text", "text": "Hello"}]}])",
       .ends_after = {1, 2, 3}});
  ASSERT_TRUE(prompt.ok()) << prompt.error().message;
  EXPECT_EQ(prompt->text,
            "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHello"
            "<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_FALSE(prompt->in_reasoning);
  ASSERT_EQ(prompt->message_ends.size(), 3u);
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
  EXPECT_EQ(prompt->message_ends[2], 0);  // there is no third
  EXPECT_TRUE(prompt->answers.empty());
}

constexpr const char* kTwoAnswers = R"([{"role": "user", "content": "One"},
  {"role": "assistant", "content": "Two"},
  {"role": "user", "content": "Three"},
  {"role": "assistant", "content": "Four"},
  {"role": "user", "content": "Five"}])";

std::vector<std::string> AnswersIn(const Engine& engine,
                                   const RenderedPrompt& prompt) {
  std::vector<std::string> texts;
  for (const IdRange& one : prompt.answers) {
    const auto ids =
        std::span(prompt.ids)
            .subspan(static_cast<std::size_t>(one.begin),
                     static_cast<std::size_t>(one.end - one.begin));
    texts.push_back(engine.codec().Decode(ids).value());
  }
  return texts;
}

// That the configuration names another end than the template's does not count.
TEST_F(DialogueOfASmallModel, KnowsWhereEarlierAnswersStand) {
  const auto dialogue = OpenWith("Qwen-Qwen3-0.6B");
  const auto prompt = dialogue->Render({.messages_json = kTwoAnswers}).value();
  EXPECT_EQ(AnswersIn(*engine_, prompt),
            (std::vector<std::string>{"Two", "Four"}));
}

// A SentencePiece vocabulary rewrites the text, its BOS is written by the
// template, and the template opens no answer.
TEST(DialogueOfASentencePieceModel, KnowsWhereAnswersAndMessagesEnd) {
  TempDir dir;
  const std::string path = dir.path() + "/inst.jinja";
  std::ofstream(path) << "{{ bos_token }}{% for m in messages %}"
                         "{% if m.role == 'assistant' %} {{ m.content }}</s>"
                         "{% else %}[INST] {{ m.content }} [/INST]{% endif %}"
                         "{% endfor %}";
  const auto engine =
      Engine::Open({.model_path = kStories260K, .context_tokens = 512}).value();
  const auto dialogue = Dialogue::Open(*engine, path).value();
  const auto prompt =
      dialogue->Render({.messages_json = kTwoAnswers, .ends_after = {1, 4, 5}})
          .value();
  ASSERT_EQ(prompt.message_ends.size(), 3u);
  EXPECT_GT(prompt.message_ends[0], 0);
  EXPECT_LT(prompt.message_ends[0], prompt.message_ends[1]);
  EXPECT_LT(prompt.message_ends[1], prompt.message_ends[2]);
  EXPECT_EQ(prompt.message_ends[2], static_cast<int>(prompt.ids.size()));
  const auto texts = AnswersIn(*engine, prompt);
  ASSERT_EQ(texts.size(), 2u) << prompt.text;
  EXPECT_NE(texts[0].find("Two"), std::string::npos) << texts[0];
  EXPECT_NE(texts[1].find("Four"), std::string::npos) << texts[1];
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
  const auto held = dialogue->Constraint(request, form, prompt);
  ASSERT_TRUE(held.ok()) << held.error().message;
  EXPECT_TRUE(held->is_new);
  EXPECT_FALSE(dialogue->Constraint(request, form, prompt)->is_new);
  auto session = engine_->NewSession().value();
  ASSERT_TRUE(session->Sync(prompt.ids, nullptr).ok());
  auto reader = dialogue->Reader(request, form, prompt).value();
  GenerateOptions options{.n_tokens_max = 400};
  options.constraint = held->make;
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

// The template writes an ended thought for it: random weights would think on.
TEST_F(DialogueOfASmallModel, ThoughtsThatAreOffAreNotBegunAgain) {
  const auto dialogue = OpenWith("Qwen-Qwen3-0.6B");
  const DialogueRequest request = {
      .messages_json = kHello, .kwargs_json = R"({"enable_thinking": false})"};
  const AnswerForm form = {.body = BodyForm::kJsonSchema,
                           .body_grammar = R"({"enum": [1, 2]})"};
  const auto prompt = dialogue->Render(request).value();
  ASSERT_TRUE(prompt.text.ends_with("</think>\n\n")) << prompt.text;
  const auto make = dialogue->Constraint(request, form, prompt).value().make;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    auto session = engine_->NewSession().value();
    ASSERT_TRUE(session->Sync(prompt.ids, nullptr).ok());
    GenerateOptions options{.n_tokens_max = 400};
    options.sampling.seed = seed;
    options.constraint = make;
    auto reader = dialogue->Reader(request, form, prompt).value();
    std::string content;
    const auto take = [&](const std::vector<AnswerEvent>& events) {
      for (const AnswerEvent& event : events) {
        EXPECT_EQ(event.kind, AnswerEvent::Kind::kText) << event.text;
        content += event.text;
      }
    };
    const auto report = session->Generate(options, [&](const Token& token) {
      take(reader->Feed(token));
      return true;
    });
    ASSERT_TRUE(report.ok()) << report.error().message;
    take(reader->Finish());
    const auto json = ParseOrderedJson(content, "the answer");
    ASSERT_TRUE(json.ok()) << report->text;
    EXPECT_TRUE(*json == 1 || *json == 2) << content;
  }
}

}  // namespace
}  // namespace hearth
