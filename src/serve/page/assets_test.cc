#include "serve/page/assets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <string>

#include "serve/page/client_name.h"

namespace hearth::serve {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string Text(std::string_view path) {
  const PageAsset* asset = FindPageAsset(path);
  return asset == nullptr ? "" : std::string(asset->bytes);
}

TEST(PageAssets, TheThreeFilesAndTheIconAreInside) {
  EXPECT_THAT(Text("/"), StartsWith("<!doctype html>"));
  EXPECT_THAT(Text("/page.css"), HasSubstr(":root {"));
  EXPECT_THAT(Text("/page.js"), HasSubstr("followEvents();"));
  EXPECT_THAT(Text("/icon.svg"), StartsWith("<svg"));
  EXPECT_EQ(FindPageAsset("/page.js/"), nullptr);
  EXPECT_EQ(FindPageAsset(""), nullptr);
  EXPECT_EQ(FindPageAsset("/../page.js"), nullptr);
}

TEST(PageAssets, EachFileHasItsOwnStrongTag) {
  std::set<std::string> tags;
  for (const char* path : {"/", "/page.css", "/page.js", "/icon.svg"}) {
    const std::string& tag = FindPageAsset(path)->etag;
    EXPECT_TRUE(std::regex_match(tag, std::regex("\"[0-9a-f]{32}\""))) << tag;
    tags.insert(tag);
  }
  EXPECT_EQ(tags.size(), 4u);
}

// The policy refuses inline code and styles; the page must not have any, and
// must ask for nothing elsewhere.
TEST(PageAssets, NothingInlineAndNothingFromElsewhere) {
  const std::string html = Text("/");
  EXPECT_FALSE(std::regex_search(html, std::regex("<style|<script>| style=")));
  EXPECT_FALSE(std::regex_search(html, std::regex("\\son[a-z]+=")));
  for (const char* path : {"/", "/page.css", "/page.js"}) {
    EXPECT_FALSE(std::regex_search(
        Text(path), std::regex("(src|href)=\"(https?:)?//|url\\(|@import")))
        << path;
  }
  EXPECT_THAT(Text("/page.js"), Not(HasSubstr("innerHTML")));
  EXPECT_THAT(Text("/page.js"), Not(HasSubstr("eval(")));
}

TEST(PageAssets, ThePolicyAllowsTheServerItselfAndNobodyElse) {
  std::string policy;
  for (const auto& [name, value] : PageHeaders()) {
    if (name == "Content-Security-Policy") policy = value;
  }
  EXPECT_THAT(policy, StartsWith("default-src 'none'; script-src 'self';"));
  EXPECT_THAT(policy, Not(HasSubstr("unsafe")));
  EXPECT_THAT(policy, HasSubstr("frame-ancestors 'none'"));
}

TEST(ClientName, IsTheProgramPeopleKnow) {
  EXPECT_EQ(ClientName("claude-cli/2.1.332 (external, sdk-cli)"),
            "Claude Code");
  EXPECT_EQ(ClientName("codex_exec/0.171.0 (Debian 12.0.0; x86_64)"), "Codex");
  EXPECT_EQ(ClientName("opencode/1.18.33 ai-sdk/provider-utils/4.0.23"),
            "opencode");
  EXPECT_EQ(ClientName("QwenCode/0.24.4 (linux; x64)"), "Qwen Code");
  EXPECT_EQ(ClientName("Mozilla/5.0 (X11; Linux x86_64)"), "browser");
  EXPECT_EQ(ClientName("my-agent/1"), "my-agent");
  EXPECT_EQ(ClientName(""), "unknown");
  EXPECT_EQ(ClientName(std::string(500, 'x')), std::string(32, 'x'));
}

}  // namespace
}  // namespace hearth::serve
