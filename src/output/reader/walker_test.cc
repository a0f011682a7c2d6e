#include "output/reader/walker.h"

#include <gtest/gtest.h>

#include <random>

#include "output/families.h"
#include "output/reader_testing.h"

namespace hearth::output {
namespace {

constexpr const char* kTools =
    R"([{"name": "f", "parameters": {"type": "object",
  "properties": {"s": {"type": "string"}, "n": {"type": "integer"},
  "x": {}}}}, {"name": "get_json", "parameters": {}}])";

std::string ReadAs(const char* family, const std::string& answer,
                   bool in_thought = false) {
  return Read(FamilyNamed(family), Tools(kTools), {answer}, in_thought);
}

TEST(Walker, ReadsTextReasoningAndCalls) {
  EXPECT_EQ(ReadAs("hermes", "Hello\n\nworld\n"), "T:Hello\n\nworld\n|");
  EXPECT_EQ(ReadAs("hermes",
                   "<think>\nhm\n</think>\n\nYes.\n<tool_call>\n{\"name\": "
                   "\"f\", \"arguments\": {\"n\": 1}}\n</tool_call>"),
            "R:hm|T:Yes.|C0:f({\"n\": 1})|");
  EXPECT_EQ(ReadAs("hermes", "hm\n</think>\nYes.", true), "R:hm|T:Yes.|");
}

TEST(Walker, ACallClosesAnOpenThought) {
  EXPECT_EQ(ReadAs("hermes",
                   "<think>hm <tool_call>{\"name\": \"f\", \"arguments\": {}}"),
            "R:hm|C0:f({})|");
}

TEST(Walker, SeveralCallsAndTextBehindThem) {
  EXPECT_EQ(ReadAs("hermes",
                   "<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>\n"
                   "<tool_call>{\"arguments\":{\"a\":[1]},\"name\":\"f\"}"
                   "</tool_call>\ndone"),
            "C0:f({})|C1:f({\"a\":[1]})|T:done|");
}

TEST(Walker, WhatIsNoCallIsTextBehindAFault) {
  EXPECT_EQ(ReadAs("hermes", "a <tool_call>\n{\"name\": \"g\", \"arguments\"}"),
            "T:a|F|T: <tool_call>\n{\"name\": \"g\", \"arguments\"}|");
  EXPECT_EQ(ReadAs("hermes", "<tool_call>nothing</tool_call> more"),
            "F|T:<tool_call>nothing</tool_call> more|");
  // A call that has begun is never taken back.
  EXPECT_EQ(ReadAs("hermes",
                   "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": oh}}"),
            "C0:f({\"a\": F|T:oh}}|");
}

TEST(Walker, AnAnswerThatEndsInsideACallSaysSo) {
  EXPECT_EQ(ReadAs("hermes", "<tool_call>\n{\"name\": \""),
            "F|T:<tool_call>\n{\"name\": \"|");
  EXPECT_EQ(ReadAs("hermes", "<tool_call>\n{\"name\": \"f\""), "C0:f(F|");
  EXPECT_EQ(ReadAs("hermes", "<tool_call>\n{\"name\": \"f\", \"arguments\": {"),
            "C0:f({F|");
}

TEST(Walker, TagsBecomeJson) {
  EXPECT_EQ(ReadAs("qwen3-coder",
                   "<tool_call>\n<function=f>\n<parameter=s>\n \"a\"\n\tb\n\n"
                   "</parameter>\n<parameter=n>\n3\n</parameter>\n"
                   "<parameter=x>\nTrue\n</parameter>\n</function>\n"
                   "</tool_call>"),
            "C0:f({\"s\": \" \\\"a\\\"\\n\\tb\\n\", \"n\": 3, \"x\": true})|");
  EXPECT_EQ(ReadAs("qwen3-coder",
                   "<tool_call>\n<function=f>\n</function>\n</tool_call>"),
            "C0:f({})|");
  EXPECT_EQ(ReadAs("glm",
                   "<tool_call>f\n<arg_key>x</arg_key>\n<arg_value>a b"
                   "</arg_value>\n</tool_call>"),
            "C0:f({\"x\": \"a b\"})|");
}

TEST(Walker, HarmonyHasARecipientOnEitherSideOfTheChannel) {
  EXPECT_EQ(
      ReadAs("harmony",
             "<|channel|>analysis<|message|>hm<|end|><|start|>assistant"
             "<|channel|>commentary to=functions.get_json <|constrain|>json"
             "<|message|>{\"a\":1}<|call|>"),
      "R:hm|C0:get_json({\"a\":1})|");
  EXPECT_EQ(ReadAs("harmony",
                   " to=functions.f<|channel|>commentary json<|message|>{}"),
            "C0:f({})|");
  EXPECT_EQ(ReadAs("harmony", "<|channel|>final<|message|>Yes."), "T:Yes.|");
}

TEST(Walker, MistralAndItsList) {
  EXPECT_EQ(ReadAs("mistral",
                   "Hm[TOOL_CALLS]f[CALL_ID]abcdefgh1[ARGS]{\"n\": 1}"
                   "[TOOL_CALLS]f[ARGS]{}"),
            "T:Hm|C0:f({\"n\": 1})|C1:f({})|");
  EXPECT_EQ(ReadAs("mistral-list",
                   "[TOOL_CALLS] [{\"name\": \"f\", \"arguments\": {}, \"id\": "
                   "\"abcdefgh1\"}, {\"name\": \"f\", \"arguments\": {}}]"),
            "C0:f({})|C1:f({})|");
}

TEST(Walker, Llama3IsTextUnlessItBeginsAsACall) {
  EXPECT_EQ(ReadAs("llama3", "{\"name\": \"f\", \"parameters\": {\"n\": 2}}"),
            "C0:f({\"n\": 2})|");
  EXPECT_EQ(ReadAs("llama3", "{\"names\": 1}"), "T:{\"names\": 1}|");
}

TEST(Walker, LineEndsInsideJsonStringsLeaveAsEscapes) {
  EXPECT_EQ(ReadAs("hermes",
                   "<tool_call>{\"name\": \"f\", \"arguments\": {\"s\": "
                   "\"a\nb\"}}</tool_call>"),
            "C0:f({\"s\": \"a\\nb\"})|");
}

// Any cut of an answer gives the same events, broken answers included.
TEST(Walker, EventsDoNotDependOnTheCut) {
  const std::vector<std::pair<const char*, std::string>> answers = {
      {"hermes",
       "<think>\na <t\n</think>\n\n b <tool_call>\n{\"name\": \"f\", "
       "\"arguments\": {\"s\": \"\\u00e9\"}}\n</tool_call>\n\n c\n"},
      {"hermes", "<tool_call>\n\n<tool_call>{\"name\""},
      // More blanks than are held.
      {"hermes", "a" + std::string(Walker::kBlanksMax + 8, '\n') +
                     "<tool_call>{\"name\": \"f\", \"arguments\": {}}"},
      {"hermes", std::string(2 * Walker::kBlanksMax + 4, '\n') +
                     "<tool_call>{\"name\": \"g\"}"},
      {"qwen3-coder",
       "x\n\n<tool_call>\n<function=f>\n<parameter=s>\na\n\n\n</parameter>\n"
       "<parameter=n>\n{'a': 1}\n</parameter>\n</function>\n</tool_call>"},
      {"deepseek-v3.2",
       "a\n\n<\xEF\xBD\x9C"
       "DSML\xEF\xBD\x9C"
       "function_calls>\n<\xEF\xBD\x9C"
       "DSML\xEF\xBD\x9Cinvoke name=\"f\">\n</\xEF\xBD\x9C"
       "DSML\xEF\xBD\x9C"
       "invoke>\n</\xEF\xBD\x9C"
       "DSML\xEF\xBD\x9C"
       "function_calls>"},
      {"harmony", "<|channel|>final <|constrain|>json<|message|>{}<|end"}};
  std::mt19937 rng(7);
  for (const auto& [family, answer] : answers) {
    const std::string whole = ReadAs(family, answer);
    for (int round = 0; round < 50; ++round) {
      std::vector<std::string> pieces(1);
      for (const char c : answer) {
        if (rng() % (1 + static_cast<unsigned>(round) % 4) == 0) {
          pieces.emplace_back();
        }
        pieces.back() += c;
      }
      EXPECT_EQ(Read(FamilyNamed(family), Tools(kTools), pieces), whole);
    }
  }
}

}  // namespace
}  // namespace hearth::output
