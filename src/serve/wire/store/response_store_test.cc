#include "serve/wire/store/response_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "serve/wire/json/body_json.h"
#include "serve/wire/store/image.h"
#include "serve/wire/store/stored_routes.h"
#include "testing/temp_dir.h"

namespace hearth::serve {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr std::int64_t kDay = 86400;

StoredResponse Response(const std::string& id, std::int64_t created_s) {
  return {.id = id,
          .space = "",
          .created_s = created_s,
          .previous_id = "resp_0",
          .input_json = R"([{"role":"user","content":"hi","id":"in_a_i0"}])",
          .response_json = R"({"id":")" + id + R"(","output":[]})"};
}

std::int64_t Now() { return NowNs() / 1'000'000'000; }

std::vector<fs::path> Files(const std::string& directory) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(directory + "/responses")) {
    files.push_back(entry.path());
  }
  return files;
}

std::unique_ptr<ResponseStore> Opened(ResponseStoreOptions options) {
  auto store = ResponseStore::Open(std::move(options));
  EXPECT_TRUE(store.ok()) << store.error().message;
  return std::move(*store);
}

TEST(ResponseStore, SurvivesARestartWithModeAndKey) {
  for (const bool sealed : {false, true}) {
    const TempDir dir;
    ResponseStoreOptions options = {.directory = dir.path()};
    if (sealed) options.vault = std::make_shared<const Vault>(Vault::Key{1});
    const std::int64_t now = Now();
    {
      const auto store = Opened(options);
      ASSERT_TRUE(store->Put(Response("resp_1", now), now).ok());
      ASSERT_TRUE(
          store
              ->Put(
                  StoredPrompt{.id = "msg_1", .created_s = now, .ids = {7, 8}},
                  now)
              .ok());
    }
    const auto files = Files(dir.path());
    ASSERT_EQ(files.size(), 2u);
    for (const fs::path& path : files) {
      struct stat st = {};
      ASSERT_EQ(::stat(path.c_str(), &st), 0);
      EXPECT_EQ(st.st_mode & 0777, 0600u);
      std::ifstream in(path, std::ios::binary);
      const std::string bytes((std::istreambuf_iterator<char>(in)), {});
      EXPECT_EQ(bytes.find("resp_1") != std::string::npos && sealed, false);
      EXPECT_EQ(bytes.substr(0, 4), sealed ? "HKVS" : "HKVR");
    }
    const auto store = Opened(options);
    EXPECT_GT(store->disk_bytes(), 0u);
    const auto found = store->Find("resp_1", "", now);
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->previous_id, "resp_0");
    EXPECT_EQ(found->input_json, Response("resp_1", now).input_json);
    EXPECT_EQ(store->FindPrompt("msg_1", "", now)->ids,
              (std::vector<std::int32_t>{7, 8}));
    // Another key finds nothing, and does not harm.
    ResponseStoreOptions other = {.directory = dir.path()};
    other.vault = std::make_shared<const Vault>(Vault::Key{2});
    EXPECT_FALSE(Opened(other)->Find("resp_1", "", now).has_value());
    EXPECT_TRUE(store->Find("resp_1", "", now).has_value());
  }
}

TEST(ResponseStore, NeverGivesWhatIsSomebodyElsesOrTooOldOrDamaged) {
  const TempDir dir;
  const std::int64_t now = Now();
  {
    const auto store = Opened({.directory = dir.path()});
    ASSERT_TRUE(store->Put(Response("resp_1", now), now).ok());
    EXPECT_FALSE(store->Find("resp_1", "other", now).has_value());
    EXPECT_FALSE(store->FindPrompt("resp_1", "", now).has_value());
    EXPECT_FALSE(store->Find("resp_1", "", now + 31 * kDay).has_value());
    EXPECT_TRUE(store->Find("resp_1", "", now + 29 * kDay).has_value());
  }
  const fs::path file = Files(dir.path()).at(0);
  for (const std::uintmax_t size :
       {fs::file_size(file) - 1, std::uintmax_t{0}}) {
    fs::resize_file(file, size);
    EXPECT_FALSE(
        Opened({.directory = dir.path()})->Find("resp_1", "", now).has_value());
  }
}

TEST(ResponseStore, KeepsItsBudgets) {
  const TempDir dir;
  const std::int64_t now = Now();
  const std::size_t one = ImageOf(Response("resp_10", now)).size();
  const auto store = Opened({.directory = dir.path(),
                             .memory_bytes = one * 2,
                             .disk_bytes = one * 5});
  for (int i = 10; i < 30; ++i) {
    ASSERT_TRUE(
        store->Put(Response("resp_" + std::to_string(i), now), now).ok());
    EXPECT_LE(store->memory_bytes(), one * 2);
    EXPECT_LE(store->disk_bytes(), one * 5);
  }
  EXPECT_EQ(Files(dir.path()).size(), 5u);
  EXPECT_TRUE(store->Find("resp_29", "", now).has_value());
  EXPECT_TRUE(store->Find("resp_26", "", now).has_value());  // from the disk
  EXPECT_FALSE(store->Find("resp_10", "", now).has_value());
}

TEST(ResponseStore, OldFilesGoWhenItIsOpened) {
  const TempDir dir;
  const std::int64_t now = Now();
  const auto store = Opened({.directory = dir.path()});
  ASSERT_TRUE(store->Put(Response("resp_1", now), now).ok());
  fs::last_write_time(
      Files(dir.path()).at(0),
      fs::file_time_type::clock::now() - std::chrono::hours(24 * 31));
  const auto later = Opened({.directory = dir.path()});
  EXPECT_TRUE(Files(dir.path()).empty());
  EXPECT_EQ(later->disk_bytes(), 0u);
}

TEST(ResponseStore, AnswersByName) {
  const auto store = Opened({});
  const std::int64_t now = 100;
  ASSERT_TRUE(store->Put(Response("resp_1", now), now).ok());
  const auto ask = [&](const char* method, const char* path) {
    return AskStore(method, path, store.get(), "", now, "r");
  };
  EXPECT_EQ(ask("GET", "/v1/responses/resp_1")->body,
            Response("resp_1", now).response_json);
  const auto items =
      OrderedJson::parse(ask("GET", "/v1/responses/resp_1/input_items")->body);
  EXPECT_EQ(items["data"][0]["content"], "hi");
  EXPECT_EQ(items["first_id"], "in_a_i0");
  EXPECT_EQ(ask("POST", "/v1/responses/resp_1/cancel")->status, 400);
  EXPECT_EQ(ask("GET", "/v1/responses/resp_2")->status, 404);
  EXPECT_THAT(ask("GET", "/v1/responses/resp_2")->body, HasSubstr("resp_2"));
  EXPECT_FALSE(ask("PUT", "/v1/responses/resp_1").has_value());
  EXPECT_FALSE(ask("GET", "/v1/models").has_value());
  EXPECT_EQ(ask("DELETE", "/v1/responses/resp_1")->status, 200);
  EXPECT_EQ(ask("GET", "/v1/responses/resp_1")->status, 404);
}

WireRequest MessagesRequest(const std::string& system,
                            const std::string& earlier) {
  const std::string body =
      R"({"model":"m","max_tokens":1,"system":")" + system +
      R"(","messages":[{"role":"user","content":"x"}],)" +
      R"("diagnostics":{"previous_message_id":")" + earlier + R"("}})";
  auto request = ParseRequest(Dialect::kMessages, "/v1/messages", "", body, {});
  EXPECT_TRUE(request.ok());
  return std::move(*request);
}

TEST(WhyMissed, NamesTheFirstThingThatChanged) {
  const auto store = Opened({});
  const std::vector<std::int32_t> ids = {1, 2, 3, 4};
  const WireRequest before = MessagesRequest("a", "");
  ASSERT_TRUE(
      store->Put(PromptRecord(before, "msg_1", "model", ids, 100), 100).ok());
  const auto why = [&](const std::string& system, const std::string& earlier,
                       const std::string& model,
                       const std::vector<std::int32_t>& now) {
    return WhyMissed(MessagesRequest(system, earlier), model, now, store.get(),
                     100);
  };
  EXPECT_EQ(why("a", "msg_1", "model", {1, 2, 3, 4, 5}), "");
  EXPECT_EQ(why("a", "msg_1", "model", {1, 2, 9, 4, 5}),
            R"({"type":"messages_changed","cache_missed_input_tokens":2})");
  EXPECT_EQ(why("b", "msg_1", "model", {9, 2}),
            R"({"type":"system_changed","cache_missed_input_tokens":4})");
  EXPECT_EQ(why("a", "msg_1", "other", {1, 2, 3, 4, 5}),
            R"({"type":"model_changed","cache_missed_input_tokens":5})");
  EXPECT_EQ(why("a", "msg_9", "model", {1}),
            R"({"type":"previous_message_not_found"})");
}

TEST(ResponseImage, GivesBackWhatItWasMadeOf) {
  const std::string image = ImageOf(Response("resp_1", 5));
  const auto read = ReadImage(AsBytes(image), "x");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(std::get<StoredResponse>(*read).response_json,
            Response("resp_1", 5).response_json);
  for (std::size_t i = 0; i < image.size(); ++i) {
    std::string damaged = image;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x40);
    const auto again = ReadImage(AsBytes(damaged), "x");
    // The time alone, which only decides when it goes, is not checked.
    EXPECT_EQ(again.ok(), i >= 16 && i < 24) << i;
    EXPECT_FALSE(ReadImage(AsBytes(image).first(i), "x").ok());
  }
}

}  // namespace
}  // namespace hearth::serve
