#include "grammar/schema/json_schema.h"

#include <gtest/gtest.h>

#include "grammar/matching_testing.h"

namespace hearth::grammar {
namespace {

std::shared_ptr<Grammar> Of(const char* schema, SchemaOptions options = {}) {
  auto made = GrammarFromJsonSchema(Json::parse(schema), options);
  EXPECT_TRUE(made.ok()) << made.error().message;
  return made.ok() ? made->grammar : nullptr;
}

Error RefusalOf(const char* schema) {
  auto made = GrammarFromJsonSchema(Json::parse(schema));
  return made.ok() ? Error{Code::kIo, "accepted"} : made.error();
}

TEST(JsonSchema, MembersComeInAnyOrderOnceEach) {
  const auto grammar = Of(R"({"type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "boolean"},
                   "c": {"type": "null"}}, "required": ["a", "b"]})");
  EXPECT_TRUE(Matches(grammar, R"({"a": 1, "b": true})"));
  EXPECT_TRUE(Matches(grammar, R"({"b":false,"c":null,"a":-7})"));
  EXPECT_TRUE(
      Matches(grammar, "{\n  \"c\": null,\n  \"b\": true,\n  \"a\": 0\n}"));
  EXPECT_FALSE(Matches(grammar, R"({"a": 1})"));
  EXPECT_FALSE(Matches(grammar, R"({"a": 1, "b": true, "a": 2})"));
  EXPECT_FALSE(Matches(grammar, R"({"a": 1, "b": true, "d": 2})"));
  EXPECT_FALSE(Matches(grammar, R"({"a": 1, "b": true,})"));
  EXPECT_FALSE(Matches(grammar, R"({"a": 1.5, "b": true})"));
}

TEST(JsonSchema, OtherMembersOnlyWhereTheyAreAllowed) {
  const auto grammar = Of(R"({"properties": {"name": {"type": "string"}},
    "additionalProperties": {"type": "integer"}})");
  EXPECT_TRUE(
      Matches(grammar, R"({"name": "x", "names": 1, "nam": 2, "": 3})"));
  EXPECT_TRUE(Matches(grammar, R"({"\u006eame": 1})") == false);
  EXPECT_TRUE(Matches(grammar, R"({"x\n": 1})"));
  EXPECT_FALSE(Matches(grammar, R"({"name": 1})"));
  EXPECT_FALSE(Matches(grammar, R"({"other": "text"})"));
  EXPECT_TRUE(
      Matches(Of(R"({"type": "object"})"), R"({"x": [1, {"y": null}]})"));
  EXPECT_FALSE(
      Matches(Of(R"({"type": "object", "additionalProperties": false})"),
              R"({"x": 1})"));
}

TEST(JsonSchema, MembersAreCounted) {
  const auto grammar = Of(R"({"properties": {"a": {"type": "null"},
    "b": {"type": "null"}, "c": {"type": "null"}}, "required": ["c"],
    "minProperties": 2, "maxProperties": 2})");
  EXPECT_TRUE(Matches(grammar, R"({"a": null, "c": null})"));
  EXPECT_TRUE(Matches(grammar, R"({"c": null, "b": null})"));
  EXPECT_FALSE(Matches(grammar, R"({"c": null})"));
  EXPECT_FALSE(Matches(grammar, R"({"a": null, "b": null})"));
  EXPECT_FALSE(Matches(grammar, R"({"a": null, "b": null, "c": null})"));
  EXPECT_EQ(RefusalOf(R"({"type": "object", "maxProperties": 1})").code,
            Code::kUnsupported);
}

TEST(JsonSchema, AKeyThatIsNoKeywordIsNotedAndHasNoEffect) {
  const auto made = GrammarFromJsonSchema(
      Json::parse(R"({"type": "integer", "order": 3, "x-ui": 1})"));
  ASSERT_TRUE(made.ok());
  ASSERT_EQ(made->notes.size(), 1u);
  EXPECT_NE(made->notes[0].find("\"order\""), std::string::npos);
  EXPECT_TRUE(Matches(made->grammar, "5"));
}

TEST(JsonSchema, ArraysHaveItemsAndCounts) {
  const auto grammar = Of(R"({"type": "array", "items": {"type": "integer"},
    "minItems": 2, "maxItems": 4})");
  EXPECT_FALSE(Matches(grammar, "[1]"));
  EXPECT_TRUE(Matches(grammar, "[1, 2]"));
  EXPECT_TRUE(Matches(grammar, "[1,2,3,4]"));
  EXPECT_FALSE(Matches(grammar, "[1,2,3,4,5]"));
  const auto tuple = Of(R"({"type": "array", "items": false, "prefixItems":
    [{"type": "string"}, {"type": "null"}]})");
  EXPECT_TRUE(Matches(tuple, "[]"));
  EXPECT_TRUE(Matches(tuple, R"(["a"])"));
  EXPECT_TRUE(Matches(tuple, R"(["a", null])"));
  EXPECT_FALSE(Matches(tuple, R"([null])"));
  EXPECT_FALSE(Matches(tuple, R"(["a", null, 1])"));
  const auto empty = Of(R"({"type": "array", "maxItems": 0})");
  EXPECT_TRUE(Matches(empty, "[]"));
  EXPECT_FALSE(Matches(empty, "[1]"));
}

TEST(JsonSchema, StringsHaveLengthsInCharacters) {
  const auto grammar =
      Of(R"({"type": "string", "minLength": 2, "maxLength": 3})");
  EXPECT_FALSE(Matches(grammar, R"("a")"));
  EXPECT_TRUE(Matches(grammar, "\"\xC3\xA9\xF0\x9F\x98\x80\""));
  EXPECT_TRUE(Matches(grammar, R"("a\n\ud83d\ude00")"));
  EXPECT_FALSE(Matches(grammar, R"("abcd")"));
  EXPECT_FALSE(Matches(grammar, R"("a\ud83d")"));
  EXPECT_TRUE(
      Matches(Of(R"({"type": "string", "pattern": "^[a-c]+$"})"), R"("abc")"));
  EXPECT_TRUE(Matches(Of(R"({"type": "string", "format": "date"})"),
                      R"("2026-11-30")"));
  EXPECT_FALSE(Matches(Of(R"({"type": "string", "format": "date"})"),
                       R"("2026-11-31")"));
}

TEST(JsonSchema, ConstantsAndAlternatives) {
  const auto grammar = Of(R"({"anyOf": [{"enum": ["red", 7, null]},
    {"type": "object", "properties": {"kind": {"const": "x"}},
     "required": ["kind"]}]})");
  for (const char* text : {R"("red")", "7", "null", R"({"kind": "x"})"}) {
    EXPECT_TRUE(Matches(grammar, text)) << text;
  }
  for (const char* text : {R"("blue")", "8", "{}", R"({"kind": "y"})"}) {
    EXPECT_FALSE(Matches(grammar, text)) << text;
  }
  const auto typed = Of(R"({"type": "string", "enum": ["a", 1, "b"]})");
  EXPECT_TRUE(Matches(typed, R"("b")"));
  EXPECT_FALSE(Matches(typed, "1"));
}

TEST(JsonSchema, AllOfJoinsWhatBothSay) {
  const auto grammar = Of(R"({"allOf": [
    {"properties": {"a": {"type": ["string", "integer"]}}, "required": ["a"]},
    {"properties": {"a": {"type": "integer", "minimum": 3}, "b": {}}}]})");
  EXPECT_TRUE(Matches(grammar, R"({"a": 3, "b": []})"));
  EXPECT_FALSE(Matches(grammar, R"({"a": "x"})"));
  EXPECT_FALSE(Matches(grammar, R"({"a": 2})"));
  EXPECT_EQ(
      RefusalOf(R"({"allOf": [{"type": "string"}, {"type": "null"}]})").code,
      Code::kInvalidArgument);
}

TEST(JsonSchema, RecursionThroughReferences) {
  const auto grammar = Of(R"({"$ref": "#/$defs/tree", "$defs": {"tree": {
    "type": "object", "properties": {"v": {"type": "integer"},
    "kids": {"type": "array", "items": {"$ref": "#/$defs/tree"}}},
    "required": ["v"]}}})");
  EXPECT_TRUE(
      Matches(grammar, R"({"v":1,"kids":[{"v":2},{"kids":[{"v":4}],"v":3}]})"));
  EXPECT_FALSE(Matches(grammar, R"({"v":1,"kids":[{"kids":[]}]})"));
}

TEST(JsonSchema, OneOfNeedsBranchesThatExcludeEachOther) {
  const auto grammar = Of(R"({"oneOf": [
    {"type": "object", "properties": {"t": {"const": "a"}, "x": {}},
     "required": ["t"]},
    {"type": "object", "properties": {"t": {"const": "b"}}, "required": ["t"]},
    {"type": "string"}]})");
  EXPECT_TRUE(Matches(grammar, R"({"t": "a", "x": 1})"));
  EXPECT_FALSE(Matches(grammar, R"({"t": "b", "x": 1})"));
  const Error error =
      RefusalOf(R"({"oneOf": [{"type": "integer"}, {"type": "number"}]})");
  EXPECT_EQ(error.code, Code::kUnsupported);
  EXPECT_NE(error.message.find("oneOf at once"), std::string::npos);
}

TEST(JsonSchema, WhatIsNotSupportedIsNamedWithItsPlace) {
  EXPECT_EQ(
      RefusalOf(R"({"properties": {"a": {"uniqueItems": true}}})").message,
      "the schema at #/properties/a: \"uniqueItems\" is not supported");
  EXPECT_EQ(RefusalOf(R"({"$ref": "https://x/y"})").code, Code::kUnsupported);
  EXPECT_EQ(RefusalOf(R"({"$ref": "#"})").code, Code::kInvalidArgument);
  EXPECT_EQ(RefusalOf(R"({"$ref": "#/nowhere"})").code, Code::kInvalidArgument);
  EXPECT_EQ(RefusalOf(R"({"type": "strin"})").code, Code::kInvalidArgument);
  EXPECT_EQ(RefusalOf("false").code, Code::kInvalidArgument);
  EXPECT_EQ(RefusalOf("[]").code, Code::kInvalidArgument);
  EXPECT_EQ(RefusalOf(R"({"type": "array", "minItems": -1})").code,
            Code::kInvalidArgument);
  EXPECT_EQ(RefusalOf(R"j({"type": "string", "pattern": "(?=x)"})j").code,
            Code::kUnsupported);
}

TEST(JsonSchema, LenientTakesAnyJsonWhereItCannotHoldAndSaysSo) {
  const auto made = GrammarFromJsonSchema(
      Json::parse(R"({"properties": {"a": {"type": "array",
                     "uniqueItems": true}, "b": {"type": "integer"}}})"),
      {.lenient = true});
  ASSERT_TRUE(made.ok());
  ASSERT_EQ(made->notes.size(), 1u);
  EXPECT_NE(made->notes[0].find("#/properties/a"), std::string::npos);
  EXPECT_TRUE(Matches(made->grammar, R"({"a": {"any": 1}, "b": 2})"));
  EXPECT_FALSE(Matches(made->grammar, R"({"b": "x"})"));
}

TEST(JsonSchema, JsonObjectIsAnyObject) {
  const auto grammar = GrammarOfJsonObject().value();
  EXPECT_TRUE(
      Matches(grammar, R"({"a": [1e5, -0.5, "\u00e9", {}], "a": null})"));
  for (const char* text : {"[]", "{", R"({"a": 01})", R"({"a": 1 e})",
                           "{\"a\": \"\x01\"}", R"({"a" "b"})", "{,}"}) {
    EXPECT_FALSE(Matches(grammar, text)) << text;
  }
}

TEST(JsonSchema, S22_ManyMembersAndLongCountsStaySmall) {
  Json properties = Json::object();
  for (int i = 0; i < 200; ++i) {
    properties["member_number_" + std::to_string(i)] = {{"type", "string"},
                                                        {"maxLength", 5000}};
  }
  const auto made =
      GrammarFromJsonSchema({{"type", "object"}, {"properties", properties}});
  ASSERT_TRUE(made.ok()) << made.error().message;
  std::string text = "{";
  for (int i = 199; i >= 0; i -= 10) {
    text += (i == 199 ? "\"" : ", \"") +
            ("member_number_" + std::to_string(i)) + "\": \"" +
            std::string(50, 'x') + "\"";
  }
  EXPECT_TRUE(Matches(made->grammar, text + "}"));
}

}  // namespace
}  // namespace hearth::grammar
