#include "base/json.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

TEST(Json, NamesTheMemberThatIsWrong) {
  const Json object = *ParseJson(R"({"a": 1, "b": "x", "c": null})", "cfg");
  EXPECT_EQ(*JsonInt(object, "a", "cfg"), 1);
  EXPECT_EQ(*JsonInt(object, "c", "cfg", 7), 7);
  const auto missing = JsonInt(object, "z", "cfg");
  ASSERT_FALSE(missing.ok());
  EXPECT_NE(missing.error().message.find("\"z\""), std::string::npos);
  EXPECT_FALSE(JsonInt(object, "b", "cfg", 7).ok())
      << "a wrong type never becomes the default";
}

TEST(Json, RefusesRubbishAndDepth) {
  EXPECT_EQ(ParseJson("{", "f").error().code, Code::kCorrupt);
  EXPECT_FALSE(ParseJson(std::string_view("12\0junk", 7), "f").ok());
  const std::string deep(100000, '[');
  EXPECT_EQ(ParseJson(deep, "f").error().code, Code::kCorrupt);
}

}  // namespace
}  // namespace hearth
