// Templates that want too much. Each ends quickly and with an Error.
#include <gtest/gtest.h>

#include <random>

#include "chat/template.h"

namespace hearth {
namespace {

std::string Repeat(const std::string& s, int n) {
  std::string out;
  for (int i = 0; i < n; ++i) out += s;
  return out;
}

Result<std::string> RunSource(const std::string& source,
                              const ChatTemplateLimits& limits = {}) {
  HEARTH_ASSIGN(const ChatTemplate chat,
                ChatTemplate::Parse(source, "t", limits));
  return chat.RenderVariables(OrderedJson::object(), {});
}

void ExpectFull(const std::string& source,
                const ChatTemplateLimits& limits = {}) {
  const Result<std::string> text = RunSource(source, limits);
  ASSERT_FALSE(text.ok()) << source.substr(0, 200);
  EXPECT_EQ(text.error().code, Code::kResourceFull)
      << source.substr(0, 200) << "\n"
      << text.error().message;
}

// Keeps the slow cases short.
ChatTemplateLimits Small() {
  ChatTemplateLimits limits;
  limits.steps_max = 200'000;
  limits.string_bytes_max = 1 << 20;
  limits.output_bytes_max = 1 << 20;
  limits.built_bytes_max = 16 << 20;
  return limits;
}

TEST(HostileTemplate, NestingInTheSourceIsBounded) {
  for (const auto& [open, close] : {std::pair{"(", ")"},
                                    {"[", "]"},
                                    {"{'a':", "}"},
                                    {"not ", ""},
                                    {"-", ""},
                                    {"a[", "]"},
                                    {"a(", ")"},
                                    {"x if y else ", ""}}) {
    ExpectFull("{{ " + Repeat(open, 20000) + "1" + Repeat(close, 20000) +
               " }}");
  }
  ExpectFull(Repeat("{% if a %}", 20000) + Repeat("{% endif %}", 20000));
  ExpectFull(Repeat("{% for a in b %}", 5000));
  ExpectFull("{% set " + Repeat("(", 20000) + "a" + Repeat(")", 20000) +
             " = 1 %}");
}

TEST(HostileTemplate, LongChainsOfOperatorsAreBounded) {
  ExpectFull("{{ 1" + Repeat(" + 1", 20000) + " }}");
  ExpectFull("{{ a" + Repeat(".b", 20000) + " }}");
  ExpectFull("{{ a" + Repeat("|upper", 20000) + " }}");
  ExpectFull("{{ a" + Repeat(" or a", 20000) + " }}");
}

TEST(HostileTemplate, LongFlatTemplatesAreFine) {
  const Result<std::string> text =
      RunSource("{{ 'a'" + Repeat(" ~ 'a'", 5000) + " }}" + "{% if false %}" +
                Repeat("{% elif false %}", 5000) + "{% else %}b{% endif %}");
  ASSERT_TRUE(text.ok()) << text.error().message;
  EXPECT_EQ(text->size(), 5002u);
}

TEST(HostileTemplate, EndlessRecursionOfMacrosIsBounded) {
  ExpectFull("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}");
  ExpectFull(
      "{% macro f(x) %}{{ g(x) }}{% if 0 %}{{ caller() }}{% endif %}"
      "{% endmacro %}"
      "{% macro g(x) %}{% call f(x) %}{% endcall %}{% endmacro %}"
      "{{ f(1) }}");
  ExpectFull("{% macro f(x=f()) %}{% endmacro %}{{ f() }}");
  ExpectFull("{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}");
}

TEST(HostileTemplate, RecursionAsDeepAsSchemasNestIsFine) {
  const Result<std::string> text = RunSource(
      "{% macro f(n) %}{% if n > 0 %}{% for i in [1] %}{{ f(n - 1) }}"
      "{% endfor %}{% else %}end{% endif %}{% endmacro %}{{ f(60) }}");
  ASSERT_TRUE(text.ok()) << text.error().message;
  EXPECT_EQ(*text, "end");
}

TEST(HostileTemplate, EndlessWorkIsBounded) {
  ExpectFull(
      "{% for a in range(99999) %}{% for b in range(99999) %}"
      "{% endfor %}{% endfor %}",
      Small());
  ExpectFull(
      "{% for a in range(99999) %}{{ range(99999) | sort }}"
      "{% endfor %}",
      Small());
  ExpectFull(
      "{% set s = 'x' * 1000000 %}{% for a in range(99999) %}"
      "{% if s == s ~ '' or s | length or s.find('y') %}{% endif %}"
      "{% endfor %}",
      Small());
}

TEST(HostileTemplate, RangesAreBounded) {
  ExpectFull("{{ range(10**9) | list }}");
  ExpectFull("{{ range(0, 9223372036854775807, 1) }}");
  EXPECT_EQ(
      *RunSource(
          "{{ range(9223372036854775806, 9223372036854775807) | first }}"),
      "9223372036854775806");
}

TEST(HostileTemplate, StringsAreBounded) {
  ExpectFull("{{ 'ab' * 10**9 }}");
  ExpectFull("{{ 'ab' * 10**18 }}");
  ExpectFull("{{ 'a'.ljust(10**12) }}");
  ExpectFull("{{ 'a'.center(10**18, 'b') }}");
  ExpectFull("{{ 'a' | center(10**12) }}");
  ExpectFull("{{ 'a'.zfill(10**12) }}");
  ExpectFull("{{ 'a' | indent(10**12) }}");
  ExpectFull("{{ '%1000000000d' % 1 }}");
  ExpectFull("{{ '{:1000000000}'.format(1) }}");
  ExpectFull("{{ '%.1000000000f' % 1 }}");
  ExpectFull("{{ ('a' * 10000).replace('a', 'b' * 1000000) }}");
  ExpectFull("{{ ('a' * 10000).replace('', 'b' * 1000000) }}");
  ExpectFull("{{ (['a'] * 10000) | join('b' * 1000000) }}");
  ExpectFull("{{ ('b' * 1000000).join(['a'] * 10000) }}");
  ExpectFull("{{ ('\\n' * 10000) | indent(' ' * 1000000, blank=true) }}");
}

TEST(HostileTemplate, DoublingIsBounded) {
  ExpectFull(
      "{% set ns = namespace(s='a') %}{% for i in range(99) %}"
      "{% set ns.s = ns.s ~ ns.s %}{% endfor %}");
  ExpectFull(
      "{% set ns = namespace(s=[1]) %}{% for i in range(99) %}"
      "{% set ns.s = ns.s + ns.s %}{% endfor %}");
  ExpectFull("{{ [0] * 10**12 }}");
  ExpectFull("{{ [1, 2] | batch(10**12, 0) | list }}");
  ExpectFull("{{ [1, 2] | slice(10**12) | list }}");
}

TEST(HostileTemplate, SharedListsDoNotExplodeWhenPrinted) {
  const std::string build =
      "{% set ns = namespace(a=[], b=[]) %}{% for i in range(60) %}"
      "{% set ns.a = [ns.a, ns.a] %}{% set ns.b = [ns.b, ns.b] %}"
      "{% endfor %}";
  ExpectFull(build + "{{ ns.a }}", Small());
  ExpectFull(build + "{{ ns.a | tojson }}", Small());
  ExpectFull(build + "{{ ns.a | tojson(indent=2) }}", Small());
  ExpectFull(build + "{{ ns.a == ns.b }}", Small());
  ExpectFull(build + "{{ ns.a < ns.b }}", Small());
}

TEST(HostileTemplate, DeepValuesAreBounded) {
  ExpectFull(
      "{% set ns = namespace(a=[]) %}{% for i in range(99999) %}"
      "{% set ns.a = [ns.a] %}{% endfor %}");
  ExpectFull(
      "{% set ns = namespace(a={}) %}{% for i in range(99999) %}"
      "{% set ns.a = {'x': ns.a} %}{% endfor %}");
  ExpectFull(
      "{% set ns = namespace(a=[]) %}{% for i in range(99999) %}"
      "{% set ns.a = dict(x=ns.a).items() %}{% endfor %}");
}

TEST(HostileTemplate, DeepConversationsAreRefused) {
  OrderedJson value = OrderedJson::array();
  for (int i = 0; i < 300; ++i) value = OrderedJson::array({value});
  const Result<std::string> text =
      ChatTemplate::Parse("x", "t")->Render(value, nullptr, {});
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.error().code, Code::kResourceFull);
}

// Objects that point to each other must neither leak nor be destroyed in a
// recursion as long as the chain; the sanitizers see both.
TEST(HostileTemplate, CyclesAndChainsOfMutableObjectsAreTakenApart) {
  for (const char* source :
       {"{% set ns = namespace() %}{% set ns.a = ns %}{{ ns.a.a is defined }}",
        "{% set ns = namespace() %}{% macro m() %}{% endmacro %}"
        "{% set ns.m = m %}True",
        "{% set ns = namespace(p=none) %}{% for i in range(50000) %}"
        "{% set ns.p = namespace(p=ns.p) %}{% endfor %}True",
        "{% set ns = namespace(m=none) %}{% for i in range(50000) %}"
        "{% set prev = ns.m %}{% macro m() %}{% endmacro %}"
        "{% set ns.m = m %}{% endfor %}True",
        "{% set ns = namespace(l=none) %}{% for i in range(50000) %}"
        "{% for x in [ns.l] %}{% set ns.l = loop %}{% endfor %}{% endfor %}"
        "True",
        "{% set ns = namespace(l=none) %}{% for i in range(50000) %}"
        "{% set prev = ns.l %}{% for x in [1] %}{% set ns.l = loop %}"
        "{% endfor %}{% endfor %}{% if ns.l %}True{% endif %}"}) {
    const Result<std::string> text = RunSource(source);
    ASSERT_TRUE(text.ok()) << source << "\n" << text.error().message;
    EXPECT_EQ(*text, "True") << source;
  }
}

TEST(HostileTemplate, ALoopThatIsOverAnswersWithoutItsItems) {
  const Result<std::string> text = RunSource(
      "{% set ns = namespace() %}{% for x in [1, 2] recursive %}"
      "{% set ns.l = loop %}{% endfor %}{{ ns.l.index }}{{ ns.l.last }}"
      "{{ ns.l.previtem is defined }}{{ ns.l.length }}");
  EXPECT_TRUE(text.ok()) << text.error().message;
  EXPECT_FALSE(
      RunSource("{% set ns = namespace() %}{% for x in [1] recursive %}"
                "{% set ns.l = loop %}{% endfor %}{{ ns.l([1]) }}")
          .ok());
}

TEST(HostileTemplate, SourcesThatAreNotUtf8AreCorrupt) {
  for (const char* source :
       {"\xff", "{{ '\xc3' }}", "a\xed\xa0\x80", "\xf5\x80\x80\x80"}) {
    const Result<ChatTemplate> chat = ChatTemplate::Parse(source, "t");
    ASSERT_FALSE(chat.ok());
    EXPECT_EQ(chat.error().code, Code::kCorrupt);
  }
}

TEST(HostileTemplate, LargeSourcesAreRefused) {
  ExpectFull(std::string((1 << 20) + 1, 'a'));
}

TEST(HostileTemplate, EveryTruncationIsHandled) {
  const std::string source =
      "{%- set ns = namespace(a=[1, 'b']) -%}{# c #}{% raw %}{{{% endraw %}"
      "{% for x, y in ns.a|map('upper') if x %}{{ x[1:2] ~ y.z(1, *a, **b) }}"
      "{% else %}{{ {'k': (1, 2.5)} }}{% endfor %}{% macro m(a, b=1) %}"
      "{% endmacro %}{% call(u) m(1) %}{% endcall %}"
      "{% filter upper %}x{% endfilter %}";
  for (std::size_t n = 0; n <= source.size(); ++n) {
    const Result<std::string> text = RunSource(source.substr(0, n));
    if (!text.ok()) {
      EXPECT_FALSE(text.error().message.empty());
    }
  }
}

TEST(HostileTemplate, RandomTokensNeverCrash) {
  static constexpr const char* kPieces[] = {
      "{{",       "}}",        "{%",    "%}",   " for ", " in ", "if ",
      "endif",    "endfor",    "x",     "[",    "]",     "(",    ")",
      "{",        "}",         "'a'",   "1",    ".",     ",",    ":",
      "|",        "~",         "is ",   "not ", "set ",  "=",    "macro ",
      "endmacro", "loop",      "-",     "+",    "*",     "%",    "upper",
      "tojson",   "namespace", "range", "else", "{#",    "#}",   "\n",
      " "};
  std::mt19937 rng(7);
  for (int round = 0; round < 20000; ++round) {
    std::string source = round % 2 == 0 ? "{{" : "{%";
    const int n = static_cast<int>(rng() % 30);
    for (int i = 0; i < n; ++i) source += kPieces[rng() % std::size(kPieces)];
    const Result<std::string> text = RunSource(source, Small());
    if (!text.ok()) {
      ASSERT_FALSE(text.error().message.empty()) << source;
    }
  }
}

}  // namespace
}  // namespace hearth
