#include "chat/template.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

ChatTemplate MustParse(const std::string& source) {
  Result<ChatTemplate> chat = ChatTemplate::Parse(source, "t");
  EXPECT_TRUE(chat.ok()) << chat.error().message;
  return chat.ok() ? *chat : *ChatTemplate::Parse("", "t");
}

OrderedJson Messages() {
  return OrderedJson::parse(R"([{"role": "user", "content": "Hi"}])");
}

std::string RenderOrError(const std::string& source,
                          const RenderOptions& options = {}) {
  const Result<std::string> text =
      MustParse(source).Render(Messages(), nullptr, options);
  return text.ok() ? *text : "error: " + text.error().message;
}

TEST(ChatTemplate, MessagesToolsAndFlagsAreVisible) {
  const OrderedJson tools = OrderedJson::parse(R"([{"z": 1, "a": 2}])");
  RenderOptions options;
  const Result<std::string> text =
      MustParse(
          "{{ messages[0].content }} {{ tools | tojson }} "
          "{{ documents }} {{ add_generation_prompt }}")
          .Render(Messages(), &tools, options);
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(*text, R"(Hi [{"z": 1, "a": 2}] None True)");
}

TEST(ChatTemplate, ToolsAreNoneWithoutTools) {
  EXPECT_EQ(RenderOrError("{{ tools is none }}"), "True");
}

TEST(ChatTemplate, TokensThatAreNotSetAreUndefined) {
  RenderOptions options;
  options.eos_token = "</s>";
  EXPECT_EQ(RenderOrError("{{ bos_token is defined }}{{ eos_token }}", options),
            "False</s>");
}

TEST(ChatTemplate, KwargsWinOverTokens) {
  RenderOptions options;
  options.bos_token = "<s>";
  options.kwargs = {{"bos_token", "<B>"}, {"enable_thinking", false}};
  EXPECT_EQ(RenderOrError("{{ bos_token }}{{ enable_thinking }}", options),
            "<B>False");
}

TEST(ChatTemplate, KwargsMustNotReplaceTheConversation) {
  RenderOptions options;
  options.kwargs = {{"messages", OrderedJson::array()}};
  const Result<std::string> text =
      MustParse("x").Render(Messages(), nullptr, options);
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.error().code, Code::kInvalidArgument);
}

TEST(ChatTemplate, MessagesMustBeAnArray) {
  const Result<std::string> text =
      MustParse("x").Render(OrderedJson::object(), nullptr, {});
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.error().code, Code::kInvalidArgument);
}

TEST(ChatTemplate, SyntaxErrorsNameTheLine) {
  const Result<ChatTemplate> chat =
      ChatTemplate::Parse("a\nb {{ 1 + }}\n", "chat.jinja");
  ASSERT_FALSE(chat.ok());
  EXPECT_EQ(chat.error().code, Code::kCorrupt);
  EXPECT_EQ(chat.error().message.rfind("chat.jinja:2: ", 0), 0u)
      << chat.error().message;
}

TEST(ChatTemplate, RaisedExceptionsKeepTheirWordsAndTheLine) {
  EXPECT_EQ(RenderOrError("\n\n{{ raise_exception('roles must alternate') }}"),
            "error: t:3: roles must alternate");
}

TEST(ChatTemplate, ErrorsInMacrosNameTheInnerLine) {
  EXPECT_EQ(
      RenderOrError("{% macro f() %}\n{{ x.y }}{% endmacro %}\n{{ f() }}"),
      "error: t:2: 'x' is undefined");
}

TEST(ChatTemplate, UnknownFiltersAreUnsupported) {
  const Result<std::string> text =
      MustParse("{{ 1 | frobnicate }}").Render(Messages(), nullptr, {});
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.error().code, Code::kUnsupported);
}

TEST(ChatTemplate, LoadingOtherTemplatesIsUnsupported) {
  for (const char* source : {"{% import 'a' as b %}", "{% include 'a' %}",
                             "{% from 'a' import b %}"}) {
    const Result<ChatTemplate> chat = ChatTemplate::Parse(source, "t");
    ASSERT_FALSE(chat.ok()) << source;
    EXPECT_EQ(chat.error().code, Code::kUnsupported) << source;
  }
}

TEST(ChatTemplate, RenderingTwiceGivesTheSame) {
  const ChatTemplate chat = MustParse(
      "{% set ns = namespace(n=0) %}{% for m in messages %}"
      "{% set ns.n = ns.n + 1 %}{% endfor %}{{ ns.n }}");
  for (int i = 0; i < 2; ++i) {
    const Result<std::string> text = chat.Render(Messages(), nullptr, {});
    ASSERT_TRUE(text.ok());
    EXPECT_EQ(*text, "1");
  }
}

TEST(ChatTemplate, VariablesAreTheNamesReadBeforeTheyAreSet) {
  const ChatTemplate chat = MustParse(
      "{% if tools %}{{ tools | tojson }}{% endif %}"
      "{% set x = 1 %}{{ x }}{% for m in messages %}{{ m }}{{ loop.index }}"
      "{% set y = m %}{% endfor %}{{ y }}"
      "{% if enable_thinking is defined and not enable_thinking %}a{% endif %}"
      "{% macro f(p) %}{{ p }}{{ q }}{% endmacro %}{{ f(range(2)) }}");
  const std::vector<std::string> expected = {"enable_thinking", "messages", "q",
                                             "tools", "y"};
  EXPECT_EQ(chat.variables(), expected);
  EXPECT_TRUE(chat.Reads("tools"));
  EXPECT_FALSE(chat.Reads("documents"));
}

TEST(ChatTemplate, NamesSetInEveryBranchAreKnownBehindIt) {
  EXPECT_TRUE(MustParse("{% if true %}{% set a = 1 %}{% else %}{% set a = 2 %}"
                        "{% endif %}{{ a }}")
                  .variables()
                  .empty());
  EXPECT_TRUE(
      MustParse("{% if true %}{% set a = 1 %}{% endif %}{{ a }}").Reads("a"));
}

TEST(ChatTemplate, DefaultIdiomStillReadsTheVariable) {
  EXPECT_TRUE(MustParse("{% if not bos is defined %}{% set bos = '' %}"
                        "{% endif %}{{ bos }}")
                  .Reads("bos"));
}

TEST(ChatTemplate, BytesThatAreNotUtf8PassThroughMessages) {
  OrderedJson messages = OrderedJson::array();
  messages.push_back({{"content", std::string("a\xff\xfe")}});
  const Result<std::string> text =
      MustParse(
          "{{ messages[0].content[1:] }}{{ messages[0].content | length }}")
          .Render(messages, nullptr, {});
  ASSERT_TRUE(text.ok()) << text.error().message;
  EXPECT_EQ(*text,
            "\xff\xfe"
            "3");
}

TEST(ChatTemplate, IntegersBeyond64BitsAreRefusedNotRounded) {
  EXPECT_EQ(RenderOrError("{{ 2 ** 64 }}"),
            "error: t:1: an integer does not fit into 64 bits");
}

TEST(ParseOrderedJson, KeepsTheOrderOfKeys) {
  const Result<OrderedJson> json = ParseOrderedJson(R"({"b":1,"a":2})", "x");
  ASSERT_TRUE(json.ok());
  EXPECT_EQ(json->dump(), R"({"b":1,"a":2})");
}

TEST(ParseOrderedJson, RefusesDeepAndBrokenText) {
  EXPECT_FALSE(ParseOrderedJson(std::string(5000, '['), "x").ok());
  EXPECT_FALSE(ParseOrderedJson("{", "x").ok());
}

TEST(ChatTemplate, IntegersOfAnySizeKeepTheirDigits) {
  const OrderedJson messages =
      ParseOrderedJson(R"([{"role":"user","content":"x",
        "n":[1000000000000000000000,18446744073709551616,
             18446744073709551615,-9223372036854775809,
             9223372036854775807,1e21]}])",
                       "m")
          .value();
  const auto render = [&](const std::string& source) {
    const auto text = MustParse(source).Render(messages, nullptr, {});
    return text.ok() ? *text : "error: " + text.error().message;
  };
  EXPECT_EQ(render("{{ messages[0].n | tojson }}"),
            "[1000000000000000000000, 18446744073709551616, "
            "18446744073709551615, -9223372036854775809, "
            "9223372036854775807, 1e+21]");
  EXPECT_EQ(render("{{ messages[0].n[0] }} {{ messages[0].n[0] is integer }} "
                   "{{ messages[0].n[0] == messages[0].n[0] }} "
                   "{{ messages[0].n[0] == messages[0].n[1] }} "
                   "{{ messages[0].n[0] is number }}"),
            "1000000000000000000000 True True False True");
  EXPECT_EQ(render("{{ messages[0].n[1] + 1 }}").rfind("error: ", 0), 0u);
}

}  // namespace
}  // namespace hearth
