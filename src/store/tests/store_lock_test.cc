// Who waits for whom: a stopped process with the lock, a slow disk, giving up.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "store/admin/store_admin.h"
#include "store/tests/store_trial_testing.h"

namespace hearth {
namespace {

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

// A slow disk's calls cannot be cut short, but none is begun any more.
TEST_F(StoreTrial, GivingUpEndsASaveWithTheCallThatIsRunning) {
  class GiveUpAt : public FileOps {
   public:
    int Fsync(int) override {
      ++n_flushed;
      if (n_flushed == at) store->GiveUp();
      return 0;
    }
    int at = 0, n_flushed = 0;
    KvStore* store = nullptr;
  };
  int n_given_up = 0;
  for (bool saved = false; !saved; ++n_given_up) {
    std::filesystem::remove_all(root_);
    GiveUpAt ops;
    options_.file_ops = &ops;
    const auto store = OpenStore();
    const TinyPrompt prompt(identity_, spec_, TinyTokens(41));
    ops.store = store.get();
    ops.at = ops.n_flushed + n_given_up + 1;
    const auto result = prompt.SaveBlocks(*store);
    saved = ops.n_flushed < ops.at;
    EXPECT_LE(ops.n_flushed, ops.at) << "flushed on";
    EXPECT_TRUE(result.ok() || result.error().code == Code::kCancelled)
        << result.error().message;
  }
  // Three blocks, each in a folder of its own.
  EXPECT_GE(n_given_up, 6);
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

}  // namespace
}  // namespace hearth
