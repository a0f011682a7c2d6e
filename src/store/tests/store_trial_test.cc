// What a stopped process, a wrong clock, limits of the system and things in the
// wrong place do to a store.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/files/faulty_file_ops.h"
#include "store/admin/store_admin.h"
#include "store/directory/dir_store.h"
#include "store/directory/layout.h"
#include "store/memo/speed_memo.h"
#include "store/tests/store_testing.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

namespace fs = std::filesystem;

class StoreTrial : public testing::Test {
 protected:
  std::unique_ptr<KvStore> OpenStore() {
    options_.tidy_in_background = false;
    auto store = KvStore::Open(root_, options_);
    EXPECT_TRUE(store.ok()) << store.error().message;
    return std::move(store).value();
  }
  Result<void> Save(int first = 100) {
    const TinyPrompt prompt(identity_, spec_, TinyTokens(41, first));
    return prompt.SaveTo(*OpenStore());
  }
  int Found(int first = 100) {
    return LookUp(*OpenStore(), identity_, spec_, TinyTokens(41, first))
        .n_tokens;
  }
  std::string PathOfBlock(std::size_t index) const {
    const StorePath path =
        BlockPath(BlockChain(identity_, TinyTokens(41), 16)[index].id);
    return root_ + "/" + path.folder + "/" + path.name;
  }
  std::string PathOfManifest(int first = 100) const {
    const BlockChain chain(identity_, TinyTokens(41, first), 16);
    return root_ + "/prompts/" + PromptStem("tiny", chain.end_id()) +
           ".kvcache";
  }
  // Saving mends what stands in the store's way, and says nothing about it.
  void ExpectMended(const std::string& what) {
    const auto saved = Save();
    EXPECT_TRUE(saved.ok()) << what << ": " << saved.error().message;
    const auto match = LookUp(*OpenStore(), identity_, spec_, TinyTokens(41));
    EXPECT_EQ(match.n_tokens, 41) << what << ": " << match.miss_reason;
    EXPECT_TRUE(match.warnings.empty()) << what;
  }

  TempDir dir_;
  std::string root_ = dir_.path() + "/s";
  KvSpec spec_ = TinySpec();
  KvIdentity identity_ = TinyIdentity(spec_);
  StoreOptions options_;
};

// A process that holds the lock and is stopped, as by a laptop's lid.
class Holder {
 public:
  explicit Holder(const std::string& root) {
    pid_ = ::fork();
    if (pid_ == 0) {
      const auto folder = Directory::Open(FileOps::System(), root);
      const auto fd = folder->OpenForUpdate(kUsageName);
      if (!fd.ok() || ::flock(fd->get(), LOCK_EX) != 0) ::_exit(1);
      ::raise(SIGSTOP);
      ::_exit(0);
    }
    int status = 0;
    stopped_ =
        ::waitpid(pid_, &status, WUNTRACED) == pid_ && WIFSTOPPED(status);
  }
  ~Holder() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  bool stopped() const { return stopped_; }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
  bool stopped_ = false;
};

TEST_F(StoreTrial, AStoppedProcessWithTheLockStopsNobodyAndIsNamed) {
  ASSERT_TRUE(Save().ok());
  const Holder holder(root_);
  ASSERT_TRUE(holder.stopped());
  options_.lock_wait = std::chrono::milliseconds(30);
  EXPECT_EQ(Found(), 41) << "readers do not lock";
  const auto saved = Save(7);
  ASSERT_FALSE(saved.ok());
  EXPECT_NE(saved.error().message.find("held by"), std::string::npos);
  EXPECT_NE(saved.error().message.find(std::to_string(holder.pid())),
            std::string::npos)
      << saved.error().message;
  EXPECT_NE(saved.error().message.find("stopped"), std::string::npos)
      << saved.error().message;
  SpaceLimits limits;
  limits.lock_wait = options_.lock_wait;
  EXPECT_EQ(StoreAdmin::Open(root_)->Gc(limits).error().code, Code::kIo);
  EXPECT_TRUE(StoreAdmin::Open(root_)->Wipe({}).ok()) << "needs no lock";
  EXPECT_EQ(Found(), 0);
}

TEST_F(StoreTrial, GivingUpEndsTheWaitForTheLock) {
  ASSERT_TRUE(Save().ok());
  const Holder holder(root_);
  options_.lock_wait = std::chrono::hours(1);
  const auto store = OpenStore();
  store->GiveUp();
  const TinyPrompt prompt(identity_, spec_, TinyTokens(41, 7));
  EXPECT_EQ(prompt.SaveTo(*store).error().code, Code::kCancelled);
}

// Writes and flushes may take as long as they like: nobody waits for them.
class LockWatcher : public FileOps {
 public:
  explicit LockWatcher(std::string usage) : usage_(std::move(usage)) {}
  ssize_t Write(int fd, const void* from, std::size_t n) override {
    if (n != 16) Check();  // the sum itself
    return FileOps::Write(fd, from, n);
  }
  int Fsync(int) override {
    Check();
    return 0;
  }
  int n_checked = 0, n_held = 0;

 private:
  void Check() {
    const int fd = ::open(usage_.c_str(), O_RDWR | O_CLOEXEC);
    if (fd < 0) return;
    ++n_checked;
    if (::flock(fd, LOCK_EX | LOCK_NB) != 0) ++n_held;
    ::close(fd);
  }
  std::string usage_;
};

TEST_F(StoreTrial, NothingIsWrittenOrFlushedUnderTheLock) {
  LockWatcher watcher(root_ + "/usage");
  options_.file_ops = &watcher;
  ASSERT_TRUE(Save().ok());
  const std::string bundle = dir_.path() + "/bundle";
  const auto admin = StoreAdmin::Open(root_, &watcher);
  const std::string stem = admin->List()->front().stem;
  ASSERT_TRUE(admin->Export(stem, bundle).ok());
  ASSERT_TRUE(admin->Wipe({}).ok());
  ASSERT_TRUE(admin->Import(bundle, {}).ok());
  ASSERT_TRUE(admin->Pin(stem).ok());
  EXPECT_GT(watcher.n_checked, 10);
  EXPECT_EQ(watcher.n_held, 0);
}

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
