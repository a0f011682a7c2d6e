// What a wrong clock, limits of the system and things in the wrong place do to
// a store.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "store/admin/store_admin.h"
#include "store/memo/speed_memo.h"
#include "store/tests/store_trial_testing.h"

namespace hearth {
namespace {

namespace fs = std::filesystem;

TEST_F(StoreTrial, ABlockAsLongAsADiskIsNotRead) {
  ASSERT_TRUE(Save().ok());
  fs::resize_file(PathOfBlock(1), std::uint64_t{16} << 30);  // sparse
  struct rusage before, after;
  ::getrusage(RUSAGE_SELF, &before);
  EXPECT_EQ(Found(), 16);
  EXPECT_FALSE(fs::exists(PathOfBlock(1))) << "set aside";
  ASSERT_TRUE(Save().ok());
  fs::resize_file(PathOfBlock(1), std::uint64_t{16} << 30);
  EXPECT_EQ(StoreAdmin::Open(root_)->Verify(true)->defects.size(), 1u);
  ::getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_minflt - before.ru_minflt, 20'000);
  EXPECT_LT(after.ru_majflt - before.ru_majflt, 20'000);
}

TEST_F(StoreTrial, ALimitOnFileLengthsIsARefusalAndNoSignal) {
  const pid_t child = ::fork();
  if (child == 0) {
    const struct rlimit limit = {1000, 1000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    options_.tidy_in_background = false;
    const auto store = KvStore::Open(root_, options_);
    if (!store.ok()) ::_exit(2);
    const TinyPrompt prompt(identity_, spec_, TinyTokens(41));
    const auto saved = prompt.SaveTo(**store);
    ::_exit(!saved.ok() && saved.error().code == Code::kResourceFull ? 0 : 3);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(StoreTrial, WhatTookAFoldersPlaceIsSetAside) {
  for (const char* name : {"blocks", "prompts", "quarantine"}) {
    ASSERT_TRUE(Save().ok());
    fs::remove_all(root_ + "/" + name);
    std::ofstream(root_ + "/" + name) << "x";
    ExpectMended(std::string(name) + " as a file");
    fs::remove_all(root_ + "/" + name);
    ASSERT_EQ(::mkfifo((root_ + "/" + name).c_str(), 0600), 0);
    ExpectMended(std::string(name) + " as a pipe");
  }
  const std::string folder = fs::path(PathOfBlock(0)).parent_path();
  fs::remove_all(folder);
  std::ofstream(folder) << "x";
  EXPECT_EQ(Found(), 0);
  ExpectMended("a folder of blocks as a file");
}

TEST_F(StoreTrial, WhatTookAFilesPlaceIsSetAside) {
  ASSERT_TRUE(Save().ok());
  for (const std::string& path : {root_ + "/usage", root_ + "/VERSION",
                                  PathOfBlock(0), PathOfManifest()}) {
    fs::remove_all(path);
    fs::create_directories(path + "/inside");
    ExpectMended(path + " as a directory");
    fs::remove_all(path);
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    ExpectMended(path + " as a pipe");
    fs::remove_all(path);
    fs::create_symlink(dir_.path() + "/outside", path);
    ExpectMended(path + " as a link");
    EXPECT_FALSE(fs::exists(dir_.path() + "/outside")) << path;
  }
}

TEST_F(StoreTrial, ADamagedVersionIsMendedAndAnotherOneRefused) {
  ASSERT_TRUE(Save().ok());
  for (const char* text : {"", "hearth store\n", "hearth st\xffre 1\n", "x"}) {
    std::ofstream(root_ + "/VERSION") << text;
    EXPECT_EQ(Found(), 41) << text;
    EXPECT_EQ(*ReadTextFile(root_ + "/VERSION"), kVersionText);
  }
  std::ofstream(root_ + "/VERSION") << "hearth store 12\n";
  EXPECT_EQ(KvStore::Open(root_).error().code, Code::kIncompatible);
}

TEST_F(StoreTrial, WhatSystemsPutIntoDirectoriesIsNoReasonToRefuse) {
  fs::create_directories(root_ + "/lost+found");
  std::ofstream(root_ + "/.DS_Store") << "x";
  EXPECT_TRUE(Save().ok());
  std::ofstream(dir_.path() + "/VERSION") << "2.0\n";  // of somebody's project
  EXPECT_EQ(KvStore::Open(dir_.path()).error().code, Code::kInvalidArgument);
}

TEST_F(StoreTrial, AFileSystemThatCannotFlushFoldersStoresAllTheSame) {
  class NoFolderFlush : public FileOps {
   public:
    int Fsync(int fd) override {
      struct stat st;
      if (::fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
        errno = EINVAL;
        return -1;
      }
      return 0;
    }
  } ops;
  options_.file_ops = &ops;
  EXPECT_TRUE(Save().ok());
  EXPECT_EQ(Found(), 41);
}

TEST_F(StoreTrial, FilesFromTheFutureDoNotCrowdOutNewOnes) {
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(Save(1000 * i).ok());
  for (const auto& entry : fs::recursive_directory_iterator(root_)) {
    if (entry.is_regular_file()) {
      fs::last_write_time(entry, fs::file_time_type::clock::now() +
                                     std::chrono::hours(640'000));
    }
  }
  options_.disk_budget_bytes = 48'000;
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(Save(7 + i).ok());
    EXPECT_EQ(Found(7 + i), 41);
  }
}

TEST_F(StoreTrial, ADamagedSpeedIsNoSpeed) {
  ASSERT_TRUE(Save().ok());
  const SpeedMemo memo(SideFiles(root_), Digest{});
  ASSERT_TRUE(memo.Save({5e9, 1234}).ok());
  EXPECT_EQ(memo.Find().prefill_tokens_per_s, 1234);
  std::string path;
  for (const auto& entry : fs::directory_iterator(root_ + "/models")) {
    path = entry.path();
  }
  const std::string good = *ReadTextFile(path);
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 1);
    std::ofstream(path) << bad;
    EXPECT_EQ(memo.Find().load_bytes_per_s, 0) << i;
  }
}

TEST_F(StoreTrial, SideFilesKeepTheBudgetAndTakeNoPromptsRoom) {
  ASSERT_TRUE(Save().ok());
  SpaceLimits limits;
  limits.disk_budget_bytes = 30'000;
  const SideFiles files(root_, limits);
  const std::string large(25'000, 'x');
  const auto written = files.Write("t.tokenizer", AsBytes(large),
                                   Durability::kCached, Room::kSpare);
  EXPECT_EQ(written.error().code, Code::kResourceFull);
  EXPECT_EQ(Found(), 41);
  ASSERT_TRUE(files
                  .Write("t.tokenizer", AsBytes(large.substr(0, 5000)),
                         Durability::kCached, Room::kSpare)
                  .ok());
  EXPECT_LE(StoreAdmin::Open(root_)->Stats()->total_bytes, 30'000u);
}

TEST_F(StoreTrial, SideFilesOfAKeyAreSealedUnderTheirOwnNames) {
  const auto key = std::make_shared<const Vault>(Vault::Key{3});
  const SideFiles plain(root_), sealed(root_, {}, key);
  ASSERT_TRUE(
      plain.Write("a.memo", AsBytes("plain"), Durability::kCached, Room::kEvict)
          .ok());
  EXPECT_FALSE(sealed.Find("a.memo", 100).has_value());
  ASSERT_TRUE(
      sealed
          .Write("a.memo", AsBytes("secret"), Durability::kCached, Room::kEvict)
          .ok());
  EXPECT_EQ(AsText(sealed.Find("a.memo", 100)->bytes), "secret");
  EXPECT_EQ(AsText(plain.Find("a.memo", 100)->bytes), "plain");
  for (const auto& entry : fs::directory_iterator(root_ + "/models")) {
    EXPECT_EQ(ReadTextFile(entry.path())->find("secret"), std::string::npos);
  }
}

}  // namespace
}  // namespace hearth
