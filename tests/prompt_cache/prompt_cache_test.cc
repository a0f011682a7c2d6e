// The persistent prompt cache through the public door: what hits.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/hash.h"
#include "hearth/engine.h"
#include "testing/launch.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

namespace fs = std::filesystem;

TEST(PromptCache, SecondLaunchComputesOneToken) {
  TempDir dir;
  for (const int n : {1, 2, 63, 64, 65, 128, 200}) {
    const EngineOptions options = WithDir(dir.path() + "/" + std::to_string(n));
    const Answer cold = MustAsk(options, Ids(n));
    EXPECT_EQ(cold.sync.reused_tokens, 0);
    EXPECT_FALSE(cold.sync.miss_reason.empty());
    const Answer hot = MustAsk(options, Ids(n));
    EXPECT_EQ(hot.sync.reused_tokens, n - 1) << hot.sync.miss_reason;
    EXPECT_EQ(hot.sync.reuse_tier, n == 1 ? "none" : "disk");
    EXPECT_EQ(hot.text, cold.text);
  }
}

TEST(PromptCache, ShorterAndLongerPromptsReuseWhatTheyShare) {
  TempDir dir;
  const EngineOptions options = WithDir(dir.path() + "/s");
  MustAsk(options, Ids(200));
  for (const int n : {197, 198, 199, 201, 230, 300}) {
    const EngineOptions no_cache{.model_path = kStories260K};
    const Answer want = MustAsk(no_cache, Ids(n));
    const Answer got = MustAsk(options, Ids(n));
    EXPECT_EQ(got.text, want.text);
    // 200 = 3 blocks and a tail of 8; a longer prompt has the tail too.
    EXPECT_GE(got.sync.reused_tokens, n > 200 ? 200 : 192);
  }
}

TEST(PromptCache, EditingTheLastWordCostsAtMostABlockAndTheTail) {
  TempDir dir;
  const EngineOptions options = WithDir(dir.path() + "/s");
  std::vector<std::int32_t> ids = Ids(500);
  MustAsk(options, ids);
  ids[497] ^= 1;
  const Answer edited = MustAsk(options, ids);
  EXPECT_GE(edited.sync.reused_tokens, 500 - 64 - 500 % 64);
  EXPECT_EQ(edited.text, MustAsk({.model_path = kStories260K}, ids).text);
}

// R61: a hit that is slower than computing is not taken.
TEST(PromptCache, R61_LoadingIsLeftOutWhereComputingIsFaster) {
  TempDir dir;
  EngineOptions options = WithDir(dir.path() + "/s");
  options.cache_always = false;
  const Answer cold = MustAsk(options, Ids(500));
  const auto memos = FilesBelow(dir.path(), ".speed");
  ASSERT_EQ(memos.size(), 1u);
  const auto pretend_slow_disk = [&] {
    // As store/memo/speed_memo.cc writes it: a line, and its checksum.
    const std::string line =
        R"({"load_bytes_per_s":1000.0,"prefill_tokens_per_s":5000.0,)"
        R"("version":2})";
    char checksum[18] = {};
    std::snprintf(checksum, sizeof(checksum), "%016llx\n",
                  static_cast<unsigned long long>(Checksum64(AsBytes(line))));
    std::ofstream(memos[0]) << line << "\n" << checksum;
  };
  pretend_slow_disk();
  const Answer declined = MustAsk(options, Ids(500));
  EXPECT_EQ(declined.sync.reused_tokens, 0);
  EXPECT_NE(declined.sync.miss_reason.find("can be loaded always"),
            std::string::npos)
      << declined.sync.miss_reason;
  EXPECT_EQ(declined.text, cold.text);
  pretend_slow_disk();
  options.cache_always = true;
  EXPECT_EQ(MustAsk(options, Ids(500)).sync.reused_tokens, 499);
  // A memo that makes no sense is none.
  options.cache_always = false;
  for (const char* text : {"", "{", "[]", "{\"version\": 2}",
                           "{\"version\": 1, \"load_bytes_per_s\": -1e999}"}) {
    std::ofstream(memos[0]) << text;
    EXPECT_EQ(MustAsk(options, Ids(500)).sync.reused_tokens, 499) << text;
  }
}

TEST(PromptCache, FileWinsOverDirectory) {
  TempDir dir;
  EngineOptions options = WithDir(dir.path() + "/s");
  options.prompt_cache_file = dir.path() + "/one.kvcache";
  const Answer cold = MustAsk(options, Ids(150));
  EXPECT_TRUE(fs::exists(options.prompt_cache_file));
  const Answer hot = MustAsk(options, Ids(150));
  EXPECT_EQ(hot.sync.reuse_tier, "file");
  EXPECT_EQ(hot.sync.reused_tokens, 149);
  EXPECT_EQ(hot.text, cold.text);
  EXPECT_TRUE(FilesBelow(dir.path(), ".kv").empty())
      << "nothing in the directory";
}

TEST(PromptCache, SessionKeepsItsOwnPrefixInMemory) {
  auto engine = Engine::Open({.model_path = kStories260K});
  ASSERT_TRUE(engine.ok());
  auto session = *(*engine)->NewSession();
  ASSERT_TRUE(session->Sync(Ids(100), nullptr).ok());
  const auto longer = session->Sync(Ids(120), nullptr);
  ASSERT_TRUE(longer.ok());
  EXPECT_EQ(longer->reused_tokens, 100);
  EXPECT_EQ(longer->reuse_tier, "memory");
  const auto shorter = session->Sync(Ids(90), nullptr);
  ASSERT_TRUE(shorter.ok());
  EXPECT_EQ(shorter->reused_tokens, 89);
}

TEST(PromptCache, BadPromptsAreRefusedByName) {
  auto engine =
      Engine::Open({.model_path = kStories260K, .context_tokens = 64});
  ASSERT_TRUE(engine.ok());
  auto session = *(*engine)->NewSession();
  EXPECT_EQ(session->Sync({}, nullptr).error().code, Code::kInvalidArgument);
  EXPECT_EQ(session->Sync(Ids(65), nullptr).error().code, Code::kResourceFull);
  EXPECT_EQ(session->Sync(std::vector<std::int32_t>{512}, nullptr).error().code,
            Code::kInvalidArgument);
  EXPECT_TRUE(session->Sync(Ids(64), nullptr).ok());
}

}  // namespace
}  // namespace hearth
