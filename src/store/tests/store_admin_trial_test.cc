// What the administrative calls do where things are damaged, swapped, moved or
// not permitted.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "store/admin/store_admin.h"
#include "store/tests/store_trial_testing.h"

namespace hearth {
namespace {

namespace fs = std::filesystem;

TEST_F(StoreTrial, AnImportKeepsTheBudgetAndMendsWhatIsDamaged) {
  ASSERT_TRUE(Save().ok());
  const auto admin = StoreAdmin::Open(root_);
  const std::string stem = admin->List()->front().stem;
  const std::string bundle = dir_.path() + "/bundle";
  ASSERT_TRUE(admin->Export(stem, bundle).ok());
  std::fstream(PathOfBlock(1), std::ios::in | std::ios::out | std::ios::binary)
      .seekp(-1, std::ios::end)
      .put('x');
  ASSERT_TRUE(admin->Import(bundle, {}).ok());
  EXPECT_EQ(Found(), 41);
  EXPECT_TRUE(admin->Verify(false)->defects.empty());

  root_ += "2";
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(Save(1000 * i).ok());
  SpaceLimits limits;
  limits.disk_budget_bytes = StoreAdmin::Open(root_)->Stats()->total_bytes;
  ASSERT_TRUE(StoreAdmin::Open(root_)->Import(bundle, limits).ok());
  EXPECT_LE(StoreAdmin::Open(root_)->Stats()->total_bytes,
            limits.disk_budget_bytes);
  EXPECT_EQ(Found(), 41);
}

TEST_F(StoreTrial, SwappedManifestsAreFoundAndNeverExported) {
  ASSERT_TRUE(Save(100).ok());
  ASSERT_TRUE(Save(7).ok());
  const std::string a = PathOfManifest(100), b = PathOfManifest(7);
  fs::rename(a, a + ".x");
  fs::rename(b, a);
  fs::rename(a + ".x", b);
  const auto admin = StoreAdmin::Open(root_);
  EXPECT_FALSE(
      admin->Export(fs::path(a).stem().string(), dir_.path() + "/f").ok());
  EXPECT_EQ(admin->Verify(true)->defects.size(), 2u);
  EXPECT_FALSE(fs::exists(a));
}

TEST_F(StoreTrial, WipeLeavesNoBlockWhereverItWasMoved) {
  ASSERT_TRUE(Save(100).ok());
  ASSERT_TRUE(Save(7).ok());
  const fs::path block = PathOfBlock(0);
  fs::rename(block, root_ + "/moved.kv");
  fs::create_directories(root_ + "/blocks/XY/deep");
  fs::rename(PathOfBlock(1), root_ + "/blocks/XY/deep/a");
  fs::rename(PathOfBlock(2), root_ + "/prompts/RENAMED.KV");
  fs::permissions(root_ + "/prompts", fs::perms(0500));
  ASSERT_EQ(::mkfifo((root_ + "/models").c_str(), 0600), 0);
  ASSERT_EQ(::mkfifo((root_ + "/blocks/pipe").c_str(), 0600), 0);
  std::ofstream(root_ + "/prompts/x.kvcache.tmp.12.3") << "x";
  const auto report = StoreAdmin::Open(root_)->Wipe({});
  ASSERT_TRUE(report.ok());
  EXPECT_TRUE(report->left.empty()) << report->left[0];
  std::vector<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(root_)) {
    if (!entry.is_directory()) names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{"VERSION", "usage"}));
}

TEST_F(StoreTrial, WipeAndGcNameWhatTheyCouldNotDelete) {
  class NoUnlink : public FileOps {
   public:
    int UnlinkAt(int directory, const char* name, int flags) override {
      if (std::string_view(name).ends_with(".kv")) {
        errno = EPERM;
        return -1;
      }
      return FileOps::UnlinkAt(directory, name, flags);
    }
  } ops;
  ASSERT_TRUE(Save().ok());
  const auto report = StoreAdmin::Open(root_, &ops)->Wipe({});
  ASSERT_TRUE(report.ok());
  ASSERT_EQ(report->left.size(), 3u);
  EXPECT_NE((report->left[0] + report->left[1] + report->left[2])
                .find(PathOfBlock(0)),
            std::string::npos);
  fs::create_directories(root_ + "/quarantine");
  std::ofstream(root_ + "/quarantine/a.kv") << "x";
  EXPECT_EQ(StoreAdmin::Open(root_, &ops)->Gc({})->left.size(), 1u);
}

TEST_F(StoreTrial, VerifyAndGcRemoveWhatIsNoFile) {
  ASSERT_TRUE(Save().ok());
  const std::string pipe = root_ + "/blocks/ab";
  fs::create_directories(pipe);
  ASSERT_EQ(::mkfifo((pipe + "/" + std::string(64, 'a') + ".kv").c_str(), 0600),
            0);
  fs::copy_file(PathOfBlock(0), root_ + "/blocks/ab/other-name.kv");
  const auto admin = StoreAdmin::Open(root_);
  const auto report = admin->Verify(true);
  ASSERT_EQ(report->defects.size(), 2u);
  EXPECT_TRUE(report->defects[0].set_aside && report->defects[1].set_aside);
  fs::create_directories(root_ + "/models/folder");
  ASSERT_TRUE(admin->Gc({})->left.empty());
  EXPECT_FALSE(fs::exists(root_ + "/models/folder"));
  EXPECT_TRUE(fs::is_empty(root_ + "/quarantine"));
  EXPECT_EQ(Found(), 41);
}

}  // namespace
}  // namespace hearth
