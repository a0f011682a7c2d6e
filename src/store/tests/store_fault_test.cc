// What happens when the system refuses, at every step that changes something.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "base/files/directory.h"
#include "base/files/faulty_file_ops.h"
#include "base/files/temporary_name.h"
#include "store/directory/dir_store.h"
#include "store/tests/store_testing.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

namespace fs = std::filesystem;
using Mode = FaultyFileOps::Mode;

int CountTemporaries(const std::string& root) {
  int n = 0;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    n += IsTemporary(entry.path().filename().string()) ? 1 : 0;
  }
  return n;
}

class StoreFault : public testing::Test {
 protected:
  std::unique_ptr<KvStore> OpenStore(const std::string& root) {
    StoreOptions options;
    options.file_ops = &ops_;
    options.tidy_in_background = false;
    auto store = KvStore::Open(root, options);
    return store.ok() ? std::move(store).value() : nullptr;
  }
  // Saves `prompt` into a new store while step `at` fails. Whether all went
  // well; false also when the store could not be opened.
  bool SaveWithFault(const std::string& root, std::int64_t at, Mode mode,
                     int error_number) {
    ops_.FailAt(at, mode, error_number);
    const auto store = OpenStore(root);
    return store != nullptr && prompt_.SaveTo(*store).ok();
  }
  // Whatever happened before: what is found is right, and saving again works.
  void ExpectSoundAndRepairable(const std::string& root,
                                const std::string& what) {
    ops_.FailAt(0, Mode::kNever, 0);
    const auto store = OpenStore(root);
    ASSERT_NE(store, nullptr) << what;
    const StoreMatch match = LookUp(*store, identity_, spec_, prompt_.tokens);
    EXPECT_TRUE(IsExact(match, identity_, spec_, prompt_.tokens)) << what;
    EXPECT_TRUE(match.warnings.empty()) << what;  // nothing torn was visible
    ASSERT_TRUE(prompt_.SaveTo(*store).ok()) << what;
    EXPECT_EQ(LookUp(*store, identity_, spec_, prompt_.tokens).n_tokens, 41)
        << what;
  }
  // Every step of a save, until one is past the last.
  void ForEveryStep(Mode mode, int error_number, bool expect_no_temporaries) {
    bool all_went_well = false;
    for (std::int64_t at = 0; !all_went_well && at < 1000; ++at) {
      const std::string root = dir_.path() + "/s" + std::to_string(at);
      const std::string what = "step " + std::to_string(at);
      all_went_well = SaveWithFault(root, at, mode, error_number);
      if (expect_no_temporaries && fs::exists(root)) {
        EXPECT_EQ(CountTemporaries(root), 0) << what;
      }
      ExpectSoundAndRepairable(root, what);
      if (HasFatalFailure()) return;
      fs::remove_all(root);
    }
    EXPECT_TRUE(all_went_well);
  }

  TempDir dir_;
  KvSpec spec_ = TinySpec();
  KvIdentity identity_ = TinyIdentity(spec_);
  TinyPrompt prompt_{identity_, spec_, TinyTokens(41)};
  FaultyFileOps ops_;
};

TEST_F(StoreFault, AnyFailedStepLeavesASoundStoreAndNoTemporaryFile) {
  ForEveryStep(Mode::kOnce, EIO, /*expect_no_temporaries=*/true);
}

TEST_F(StoreFault, AFullDiskAtAnyStepLeavesASoundStore) {
  ForEveryStep(Mode::kOnce, ENOSPC, /*expect_no_temporaries=*/true);
}

TEST_F(StoreFault, ACrashAtAnyStepLeavesASoundStore) {
  ForEveryStep(Mode::kForEver, EIO, /*expect_no_temporaries=*/false);
}

TEST_F(StoreFault, AFullDiskIsReportedAsSuchAndOldEntriesStayReadable) {
  const std::string root = dir_.path() + "/s";
  ASSERT_TRUE(SaveWithFault(root, 0, Mode::kNever, 0));
  const auto store = OpenStore(root);
  const TinyPrompt other(identity_, spec_, TinyTokens(41, 9));
  ops_.FailAt(0, Mode::kForEver, ENOSPC);
  const auto saved = other.SaveTo(*store);
  ASSERT_FALSE(saved.ok());
  EXPECT_EQ(saved.error().code, Code::kResourceFull);
  EXPECT_EQ(LookUp(*store, identity_, spec_, prompt_.tokens).n_tokens, 41);
}

TEST_F(StoreFault, AReadOnlyStoreServesAndRefusesToSave) {
  const std::string root = dir_.path() + "/s";
  ASSERT_TRUE(SaveWithFault(root, 0, Mode::kNever, 0));
  ops_.FailAt(0, Mode::kForEver, EROFS);
  const auto store = OpenStore(root);
  ASSERT_NE(store, nullptr);
  EXPECT_EQ(LookUp(*store, identity_, spec_, prompt_.tokens).n_tokens, 41);
  const TinyPrompt other(identity_, spec_, TinyTokens(41, 9));
  EXPECT_EQ(other.SaveTo(*store).error().code, Code::kIo);
  // What is there already needs no write, so saving it is no failure.
  EXPECT_TRUE(prompt_.SaveBlock(*store, 0).ok());
}

// As above with the system's own permissions, which do not bind root: a child
// gives up its rights first.
TEST_F(StoreFault, AStoreWithoutWritePermissionServes) {
  const std::string root = dir_.path() + "/s";
  ASSERT_TRUE(SaveWithFault(root, 0, Mode::kNever, 0));
  constexpr uid_t kNobody = 65534;
  const bool is_root = ::geteuid() == 0;
  if (is_root) {
    ASSERT_EQ(::chmod(dir_.path().c_str(), 0755), 0);
    ASSERT_EQ(::lchown(root.c_str(), kNobody, kNobody), 0);
  }
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (is_root) {
      ASSERT_EQ(::lchown(entry.path().c_str(), kNobody, kNobody), 0);
    }
    fs::permissions(entry, fs::perms(entry.is_directory() ? 0500 : 0400));
  }
  fs::permissions(root, fs::perms(0500));
  const pid_t child = ::fork();
  if (child == 0) {
    if (is_root && ::seteuid(kNobody) != 0) ::_exit(1);
    StoreOptions options;
    options.tidy_in_background = false;  // no thread to end before _exit
    auto store = KvStore::Open(root, options);
    if (!store.ok()) ::_exit(2);
    const auto match = LookUp(**store, identity_, spec_, prompt_.tokens);
    if (match.n_tokens != 41) ::_exit(3);
    const TinyPrompt other(identity_, spec_, TinyTokens(41, 9));
    if (other.SaveTo(**store).ok()) ::_exit(4);
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  fs::permissions(root, fs::perms(0700));
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    fs::permissions(entry, fs::perms(0700));
  }
}

TEST_F(StoreFault, ShortReadsAndWritesChangeNothing) {
  const std::string root = dir_.path() + "/s";
  ops_.set_bytes_per_call_max(7);
  ASSERT_TRUE(SaveWithFault(root, 0, Mode::kNever, 0));
  ExpectSoundAndRepairable(root, "short calls");
}

// A file that holds one prompt is written as the prompt grows, so that a killed
// prefill leaves its blocks: what a fault leaves is the old prompt, whole
// blocks of the new one, or all of it.
TEST_F(StoreFault, ABundleIsSoundAtEveryStep) {
  const std::string path = dir_.path() + "/bundle";
  const TinyPrompt before(identity_, spec_, TinyTokens(20, 9));
  ASSERT_TRUE(SaveBundle(path, before, &ops_).ok());
  bool all_went_well = false;
  for (std::int64_t at = 0; !all_went_well && at < 100; ++at) {
    ops_.FailAt(at, Mode::kOnce, EIO);
    all_went_well = SaveBundle(path, prompt_, &ops_).ok();
    EXPECT_EQ(CountTemporaries(dir_.path()), 0) << at;
    const int n_old =
        LookupBundle(path, identity_, spec_, before.tokens).n_tokens;
    const int n_new =
        LookupBundle(path, identity_, spec_, prompt_.tokens).n_tokens;
    const bool as_it_was = n_old == 20 && n_new == 0;
    const bool new_blocks =
        n_old == 0 && n_new > 0 && n_new % spec_.block_tokens == 0;
    const bool whole = n_old == 0 && n_new == 41;
    EXPECT_TRUE(whole || (!all_went_well && (as_it_was || new_blocks)))
        << at << ": " << n_old << " and " << n_new;
  }
  EXPECT_TRUE(all_went_well);
}

}  // namespace
}  // namespace hearth
