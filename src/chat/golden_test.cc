// Renderings that the reference implementation made, for every template that
// we have. The repository holds a few of them; the whole set is used when it
// lies beside the checkout.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "chat/template.h"
#include "hearth_test_paths.h"

namespace hearth {
namespace {

namespace fs = std::filesystem;

std::string ReadAll(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(in)), {});
}

OrderedJson ReadJson(const fs::path& path) {
  Result<OrderedJson> json = ParseOrderedJson(ReadAll(path), path.string());
  EXPECT_TRUE(json.ok()) << path;
  return json.ok() ? *json : OrderedJson();
}

// 2026-01-02 03:04:05, the clock of the reference.
std::chrono::local_seconds FixtureTime() {
  return std::chrono::local_seconds(std::chrono::seconds(1767323045));
}

struct Tally {
  int passed = 0;
  int failed = 0;
};

RenderOptions FixtureOptions(const OrderedJson& golden) {
  RenderOptions options;
  options.add_generation_prompt = golden["add_generation_prompt"].get<bool>();
  options.kwargs = golden["kwargs"];
  options.bos_token = "<BOS>";
  options.eos_token = "<EOS>";
  options.unk_token = "<UNK>";
  options.now = FixtureTime();
  return options;
}

void CheckCase(const ChatTemplate& chat, const OrderedJson& conversation,
               const OrderedJson& golden, Tally* tally) {
  const OrderedJson* tools =
      conversation.contains("tools") ? &conversation["tools"] : nullptr;
  const Result<std::string> text =
      chat.Render(conversation["messages"], tools, FixtureOptions(golden));
  const std::string where =
      golden["conversation"].get<std::string>() + " " + golden["kwargs"].dump();
  bool good = false;
  if (golden.contains("error")) {
    good = !text.ok();
    EXPECT_TRUE(good) << where << ": should fail with " << golden["error"];
  } else {
    EXPECT_TRUE(text.ok()) << where << ": " << text.error().message;
    good = text.ok() && *text == golden["rendered"].get<std::string>();
    if (text.ok()) {
      EXPECT_EQ(*text, golden["rendered"].get<std::string>()) << where;
    }
  }
  ++(good ? tally->passed : tally->failed);
}

Tally CheckFolder(const fs::path& goldens, const fs::path& sources) {
  Tally tally;
  const OrderedJson conversations = ReadJson(goldens / "conversations.json");
  for (const auto& entry : fs::directory_iterator(goldens)) {
    if (entry.path().extension() != ".json" ||
        entry.path().filename() == "conversations.json") {
      continue;
    }
    const OrderedJson golden = ReadJson(entry.path());
    const std::string name = golden["template"].get<std::string>();
    SCOPED_TRACE(name);
    const Result<ChatTemplate> chat =
        ChatTemplate::Parse(ReadAll(sources / name), name);
    EXPECT_TRUE(chat.ok()) << chat.error().message;
    if (!chat.ok()) continue;
    for (const OrderedJson& one : golden["cases"]) {
      CheckCase(*chat, conversations[one["conversation"].get<std::string>()],
                one, &tally);
    }
  }
  return tally;
}

TEST(ChatTemplateGolden, StoredTemplatesRenderAsTheReference) {
  const fs::path data = fs::path(HEARTH_TEST_DATA) / "chat" / "templates";
  const Tally tally = CheckFolder(data, data);
  EXPECT_EQ(tally.failed, 0);
  EXPECT_GT(tally.passed, 200);
}

TEST(ChatTemplateGolden, AllTemplatesRenderAsTheReference) {
  const fs::path shared = HEARTH_SHARED;
  if (!fs::exists(shared / "fixtures" / "templates")) {
    GTEST_SKIP() << "the full set is not here";
  }
  const Tally tally = CheckFolder(shared / "fixtures" / "templates",
                                  shared / "models" / "chat-templates");
  EXPECT_EQ(tally.failed, 0);
  RecordProperty("passed", tally.passed);
  EXPECT_EQ(tally.passed, 1024);
}

TEST(ChatTemplateGolden, EverySourceParses) {
  const fs::path folder = fs::path(HEARTH_SHARED) / "models/chat-templates";
  if (!fs::exists(folder)) GTEST_SKIP() << "the full set is not here";
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".jinja") continue;
    const Result<ChatTemplate> chat = ChatTemplate::Parse(
        ReadAll(entry.path()), entry.path().filename().string());
    ASSERT_TRUE(chat.ok()) << chat.error().message;
    EXPECT_TRUE(chat->Reads("messages")) << entry.path();
  }
}

}  // namespace
}  // namespace hearth
