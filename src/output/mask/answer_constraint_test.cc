#include "output/mask/answer_constraint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/json.h"
#include "output/families.h"
#include "output/reader_testing.h"

namespace hearth::output {
namespace {

constexpr const char* kTools = R"([{"name": "pick", "parameters": {
  "type": "object", "properties": {"n": {"type": "integer", "minimum": 0,
  "maximum": 9}, "on": {"type": "boolean"}, "who": {"type": "string",
  "enum": ["a", "b"]}}, "required": ["n", "who"],
  "additionalProperties": false}}, {"name": "stop", "parameters": {
  "type": "object", "properties": {}}}])";

std::shared_ptr<const Tokenizer> Bytes() {
  static const std::shared_ptr<const Tokenizer> bytes = MakeByteTokenizer();
  return bytes;
}

Result<MakeConstraint> Constrain(const char* family, const char* tools,
                                 const AnswerRules& rules,
                                 int reasoning_tokens_max = -1,
                                 bool in_thought = false) {
  const auto program = FamilyNamed(family);
  std::vector<std::string> notes;
  return ConstrainAnswer({.program = program,
                          .tokenizer = Bytes(),
                          .trie = TrieFor(*program, *Bytes()),
                          .in_thought = in_thought,
                          .reasoning_tokens_max = reasoning_tokens_max},
                         ToolSet::Parse(tools).value(), rules, notes);
}

std::vector<std::int32_t> Allowed(TokenConstraint& constraint) {
  std::vector<std::uint64_t> bits(4);
  constraint.Mask(bits);
  std::vector<std::int32_t> ids;
  for (std::int32_t id = 0; id < 256; ++id) {
    if ((bits[static_cast<std::size_t>(id) / 64] >> (id % 64) & 1) != 0) {
      ids.push_back(id);
    }
  }
  return ids;
}

bool Takes(TokenConstraint& constraint, const std::string& text) {
  for (const char c : text) {
    const auto ids = Allowed(constraint);
    const auto id = static_cast<std::int32_t>(static_cast<unsigned char>(c));
    if (std::find(ids.begin(), ids.end(), id) == ids.end()) return false;
    constraint.Accept(id);
  }
  return true;
}

// A random text that the constraint allows, until nothing more may come.
std::string Walked(TokenConstraint& constraint, std::mt19937& rng) {
  std::string text;
  while (text.size() < 1000) {
    const auto ids = Allowed(constraint);
    if (ids.empty()) return text;
    const std::int32_t id = ids[rng() % ids.size()];
    constraint.Accept(id);
    text += static_cast<char>(id);
    // The one form that could go on after a call but for its end marker.
    if (text.ends_with("<|call|>")) return text;
  }
  return text;
}

// Whatever a mask allows is read back as calls that fit their schemas, by a
// reader that knows nothing of masks.
TEST(AnswerConstraint, WhatMasksAllowIsReadAsCallsThatFit) {
  const AnswerRules rules{.calls_required = true, .parallel = false};
  std::mt19937 rng(3);
  for (const auto& family : CallFamilies()) {
    // Reasoning is free text, which a random walk seldom leaves.
    const auto constrain = Constrain(family->family.c_str(), kTools, rules, 0);
    ASSERT_TRUE(constrain.ok()) << constrain.error().message;
    int n_calls = 0;
    for (int round = 0; round < 30; ++round) {
      const auto constraint = (*constrain)();
      const std::string text = Walked(*constraint, rng);
      if (text.size() >= 1000) continue;
      const std::string shown = Read(family, Tools(kTools), {text});
      EXPECT_EQ(shown.find("F|"), std::string::npos) << text << "\n" << shown;
      const std::size_t begin = shown.find("C0:");
      ASSERT_NE(begin, std::string::npos)
          << family->family << ": " << text << "\n"
          << shown;
      const std::size_t open = shown.find('(', begin);
      const Json arguments =
          Json::parse(shown.substr(open + 1, shown.find(")|", open) - open - 1),
                      nullptr, false);
      ASSERT_TRUE(arguments.is_object()) << text << "\n" << shown;
      if (shown.substr(begin + 3, 4) == "pick") {
        EXPECT_TRUE(arguments.contains("n") && arguments["n"].is_number())
            << shown;
        EXPECT_TRUE(arguments.contains("who") &&
                    (arguments["who"] == "a" || arguments["who"] == "b"))
            << shown;
      }
      ++n_calls;
    }
    EXPECT_GT(n_calls, 0) << family->family;
  }
}

TEST(AnswerConstraint, FreeTextStaysFreeUntilACallBegins) {
  const auto make = Constrain("hermes", kTools, {});
  ASSERT_TRUE(make.ok());
  auto constraint = (*make)();
  EXPECT_TRUE(Takes(*constraint, "Any text, <tool_calls and {\"so\": on"));
  EXPECT_TRUE(Takes(*constraint, " <tool_call>\n{\"name\": \"stop\""));
  EXPECT_FALSE(Takes(*(*make)(), "<tool_call>nothing"));
  EXPECT_FALSE(Takes(*(*make)(), "<tool_call>\n{\"name\": \"other\""));
}

TEST(AnswerConstraint, ARequiredCallBeginsAtOnceOrAfterAThought) {
  const auto make = Constrain("hermes", kTools, {.calls_required = true});
  ASSERT_TRUE(make.ok());
  EXPECT_FALSE(Takes(*(*make)(), "Text"));
  EXPECT_TRUE(Takes(*(*make)(), "<think>hm</think>\n<tool_call>\n{"));
  EXPECT_FALSE(Takes(*(*make)(), "<think>hm</think>\nText"));
}

TEST(AnswerConstraint, ASchemaHoldsTheContentAndNotTheThought) {
  const auto make = Constrain("hermes", "",
                              {.body = BodyForm::kJsonSchema,
                               .body_grammar = R"({"type": "boolean"})"});
  ASSERT_TRUE(make.ok());
  EXPECT_TRUE(Takes(*(*make)(), "<think>any {thought}</think>\ntrue"));
  EXPECT_TRUE(Takes(*(*make)(), "false"));
  EXPECT_FALSE(Takes(*(*make)(), "<think>any</think>maybe"));
  EXPECT_FALSE(Takes(*(*make)(), "true and"));
}

TEST(AnswerConstraint, AThoughtEndsAtItsLimit) {
  const auto make = Constrain("hermes", "", {}, 3, /*in_thought=*/true);
  ASSERT_TRUE(make.ok());
  auto constraint = (*make)();
  EXPECT_TRUE(Takes(*constraint, "abc"));
  EXPECT_EQ(Allowed(*constraint), std::vector<std::int32_t>{'<'});
  const int mark = constraint->Mark();
  EXPECT_TRUE(Takes(*constraint, "</think>free"));
  constraint->Return(mark);
  EXPECT_EQ(Allowed(*constraint), std::vector<std::int32_t>{'<'});
}

TEST(AnswerConstraint, NoThoughtBeginsWhereNoneIsWanted) {
  const AnswerRules form{.body = BodyForm::kJsonSchema,
                         .body_grammar = R"({"type": "boolean"})"};
  for (const auto& family : CallFamilies()) {
    const auto make = Constrain(family->family.c_str(), "", form, 0);
    ASSERT_TRUE(make.ok()) << make.error().message;
    std::mt19937 rng(5);
    for (int round = 0; round < 10; ++round) {
      const auto constraint = (*make)();
      const std::string text = Walked(*constraint, rng);
      EXPECT_EQ(Read(family, Tools("[]"), {text}).find("R:"), std::string::npos)
          << family->family << ": " << text;
    }
  }
  EXPECT_FALSE(Takes(*(*Constrain("hermes", "", form, 0))(), "<think>"));
  // A thought that the prompt has begun is ended at once.
  const auto begun = Constrain("hermes", "", form, 0, /*in_thought=*/true);
  EXPECT_TRUE(Takes(*(*begun)(), "</think>true"));
  EXPECT_FALSE(Takes(*(*begun)(), "a"));
}

TEST(AnswerConstraint, WhatCannotBeHeldToIsRefusedWhereItIsAsked) {
  const char* tools = R"([{"name": "f", "parameters": {"type": "object",
    "properties": {"x": {"type": "array", "uniqueItems": true}}}}])";
  EXPECT_TRUE(Constrain("hermes", tools, {}).ok());
  const auto strict = Constrain("hermes", tools, {.strict = true});
  ASSERT_FALSE(strict.ok());
  EXPECT_EQ(strict.error().code, Code::kUnsupported);
  EXPECT_NE(strict.error().message.find("uniqueItems"), std::string::npos);
  EXPECT_FALSE(Constrain("hermes", "", {.calls_required = true}).ok());
}

}  // namespace
}  // namespace hearth::output
