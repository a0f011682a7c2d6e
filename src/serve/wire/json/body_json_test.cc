#include "serve/wire/json/body_json.h"

#include <gtest/gtest.h>

namespace hearth::serve {
namespace {

std::string Refusal(const std::string& text) {
  const auto parsed = ParseBodyJson(text, "");
  return parsed.ok() ? "taken" : parsed.error().message;
}

std::string Nested(int depth) {
  return std::string(static_cast<std::size_t>(depth), '[') +
         std::string(static_cast<std::size_t>(depth), ']');
}

TEST(BodyJson, KeepsTheOrderOfKeys) {
  const auto parsed =
      ParseBodyJson(R"({"b":1,"a":{"z":[1.5,null],"y":""}})", "");
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(Dump(*parsed), R"({"b":1,"a":{"z":[1.5,null],"y":""}})");
}

TEST(BodyJson, RefusesWhatCanBeReadInTwoWays) {
  EXPECT_NE(Refusal(R"({"a":1,"a":2})").find("twice"), std::string::npos);
  EXPECT_NE(Refusal("{\"a\":\"\xff\"}").find("UTF-8"), std::string::npos);
  EXPECT_NE(Refusal(std::string("{}\0x", 4)).find("NUL"), std::string::npos);
  EXPECT_NE(Refusal("{} x").find("not valid"), std::string::npos);
  EXPECT_NE(Refusal("[1e999]").find("not valid"), std::string::npos);
}

TEST(BodyJson, HasLimits) {
  EXPECT_EQ(Refusal(Nested(kJsonDepthMax)), "taken");
  EXPECT_NE(Refusal(Nested(kJsonDepthMax + 1)).find("deeper"),
            std::string::npos);
  std::string wide = "{";
  for (std::size_t i = 0; i <= kJsonMembersMax; ++i) {
    wide += "\"" + std::to_string(i) + "\":0,";
  }
  wide.back() = '}';
  EXPECT_NE(Refusal(wide).find("members"), std::string::npos);
}

TEST(BodyJson, HalfASurrogatePairIsTheReplacementCharacter) {
  const auto parsed =
      ParseBodyJson(R"(["\ud83d","\ud83d\ude00","\\ud83d","\ude00x"])", "");
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(Dump(*parsed),
            "[\"\xef\xbf\xbd\",\"\xf0\x9f\x98\x80\",\"\\\\ud83d\","
            "\"\xef\xbf\xbdx\"]");
}

}  // namespace
}  // namespace hearth::serve
