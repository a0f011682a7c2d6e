#include "serve/routes/cache_change.h"

#include <gtest/gtest.h>

namespace hearth::serve {
namespace {

Result<CacheChange> Parse(const std::string& body) {
  HttpRequest request;
  request.body = body;
  return ParseCacheChange(request);
}

TEST(CacheChange, SaysOneThingAboutOnePrompt) {
  const auto pin = Parse(R"({"pin": "tiny-0123456789ab"})");
  ASSERT_TRUE(pin.ok());
  EXPECT_EQ(pin->kind, CacheChange::Kind::kPin);
  EXPECT_EQ(pin->name, "tiny-0123456789ab");
  EXPECT_EQ(Parse(R"({"unpin": "a"})")->kind, CacheChange::Kind::kUnpin);
  EXPECT_EQ(Parse(R"({"evict": "a"})")->kind, CacheChange::Kind::kEvict);
}

TEST(CacheChange, AnythingElseIsRefused) {
  for (const std::string& body :
       {std::string(), std::string("[]"), std::string("{}"),
        std::string(R"({"pin": 1})"), std::string(R"({"wipe": "a"})"),
        std::string(R"({"pin": "a", "evict": "a"})"),
        std::string(R"({"pin": ""})"),
        R"({"pin": ")" + std::string(300, 'a') + R"("})"}) {
    const auto change = Parse(body);
    ASSERT_FALSE(change.ok()) << body;
    EXPECT_EQ(change.error().code, Code::kInvalidArgument) << body;
  }
}

}  // namespace
}  // namespace hearth::serve
