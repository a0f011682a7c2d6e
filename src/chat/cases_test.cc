// Small templates with the text they give. Each file in tests/data/chat is a
// list of {name, template, context, python}: what the reference printed, null
// where it raised.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "chat/template.h"
#include "hearth_test_paths.h"

namespace hearth {
namespace {

OrderedJson ReadCases(const std::string& file) {
  std::ifstream in(HEARTH_TEST_DATA "/chat/" + file, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  Result<OrderedJson> json = ParseOrderedJson(text, file);
  EXPECT_TRUE(json.ok()) << file;
  return json.ok() ? *json : OrderedJson::array();
}

Result<std::string> RenderCase(const std::string& source,
                               const OrderedJson& context) {
  HEARTH_ASSIGN(const ChatTemplate chat, ChatTemplate::Parse(source, "case"));
  RenderOptions options;
  options.now = std::chrono::local_seconds(std::chrono::seconds(1767323045));
  return chat.RenderVariables(context, options);
}

void CheckPython(const OrderedJson& cases) {
  for (const OrderedJson& one : cases) {
    const Result<std::string> text =
        RenderCase(one["template"].get<std::string>(), one["context"]);
    const std::string where = one["name"].get<std::string>() + ": " +
                              one["template"].get<std::string>();
    if (one["python"].is_null()) {
      EXPECT_FALSE(text.ok()) << where << "\ngave " << *text;
      continue;
    }
    ASSERT_TRUE(text.ok()) << where << "\n" << text.error().message;
    EXPECT_EQ(*text, one["python"].get<std::string>()) << where;
  }
}

TEST(JinjaCases, SmallTemplatesPrintWhatTheReferenceDoes) {
  const OrderedJson cases = ReadCases("hf-jinja-cases.json");
  EXPECT_EQ(cases.size(), 157u);
  CheckPython(cases);
}

TEST(JinjaCases, FeaturesBehaveAsInTheReference) {
  CheckPython(ReadCases("python-cases.json"));
}

TEST(JinjaCases, RealModelTemplatesRenderTheirTargets) {
  const OrderedJson cases = ReadCases("hf-jinja-e2e.json");
  EXPECT_EQ(cases.size(), 32u);
  for (const OrderedJson& one : cases) {
    const std::string name = one["name"].get<std::string>();
    Result<ChatTemplate> chat =
        ChatTemplate::Parse(one["chat_template"].get<std::string>(), name);
    ASSERT_TRUE(chat.ok()) << chat.error().message;
    RenderOptions options;
    if (one.contains("now")) {
      options.now = std::chrono::local_seconds(
          std::chrono::seconds(one["now"].get<std::int64_t>()));
    }
    const Result<std::string> text =
        chat->RenderVariables(one["data"], options);
    EXPECT_TRUE(text.ok()) << name << ": " << text.error().message;
    if (text.ok()) {
      EXPECT_EQ(*text, one["target"].get<std::string>()) << name;
    }
  }
}

}  // namespace
}  // namespace hearth
