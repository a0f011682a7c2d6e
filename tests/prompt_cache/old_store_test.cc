// Stores that the commit ed04961 wrote, with its program and stories260K: what
// is stored there is found by every later version.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "hearth/cache.h"
#include "hearth/engine.h"
#include "hearth_test_paths.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

namespace fs = std::filesystem;

const std::string kFirst =
    "Once upon a time, there was a little girl named Lily. She loved to play "
    "outside in the park with her friends. One day, she saw a big dog by the "
    "old tree, and the dog was very sad because it had lost its ball.";
const std::string kSecond =
    kFirst +
    " Lily wanted to help, so she looked under the bench and behind the tree. "
    "She found the red ball and gave it back to the dog.";

class OldStore : public testing::Test {
 protected:
  OldStore() {
    fs::copy(std::string(HEARTH_TEST_DATA "/store_ed04961"), root_,
             fs::copy_options::recursive);
    options_.model_path =
        std::string(HEARTH_TEST_DATA "/models/stories260K.gguf");
    options_.kv_storage = KvStorage::kFp16;
    options_.cache_always = true;
  }
  // All of the prompt but its last token, which is computed always.
  void ExpectHot(const std::string& text, const char* tier) {
    const auto engine = Engine::Open(options_);
    ASSERT_TRUE(engine.ok()) << engine.error().message;
    const auto session = (*engine)->NewSession().value();
    const auto ids = (*engine)->codec().Encode(text, true).value();
    const auto report = session->Sync(ids, nullptr);
    ASSERT_TRUE(report.ok()) << report.error().message;
    EXPECT_EQ(report->reused_tokens, report->prompt_tokens - 1)
        << report->miss_reason;
    EXPECT_EQ(report->reuse_tier, tier);
    EXPECT_TRUE(report->warnings.empty()) << report->warnings[0];
  }

  TempDir dir_;
  std::string root_ = dir_.path() + "/old";
  EngineOptions options_;
};

TEST_F(OldStore, BlocksPiecesAndManifestsServe) {
  options_.prompt_cache_dir = root_ + "/store";
  ExpectHot(kSecond, "disk");
  ExpectHot(kFirst, "disk");
}

TEST_F(OldStore, ABundleServes) {
  options_.prompt_cache_file = root_ + "/bundle.kv";
  ExpectHot(kFirst, "file");
}

TEST_F(OldStore, EncryptedEntriesServe) {
  options_.kv_storage = KvStorage::kInt8;
  options_.prompt_cache_dir = root_ + "/sealed";
  options_.cache_key_file = root_ + "/key";
  std::ofstream(options_.cache_key_file) << std::string(32, 'k');
  fs::permissions(options_.cache_key_file, fs::perms(0600));
  ExpectHot(kFirst.substr(0, 120), "disk");
}

}  // namespace
}  // namespace hearth
