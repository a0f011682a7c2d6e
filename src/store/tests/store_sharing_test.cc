// Many threads and processes on one store.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "base/files/directory.h"
#include "store/directory/dir_store.h"
#include "store/directory/layout.h"
#include "store/tests/store_testing.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

namespace fs = std::filesystem;

class StoreSharing : public testing::Test {
 protected:
  // Saves the prompt and finds it again, through a store of its own.
  bool SaveAndFind() const {
    auto store = KvStore::Open(root_);
    if (!store.ok()) return false;
    const TinyPrompt prompt(identity_, spec_, TinyTokens(41));
    if (!prompt.SaveTo(**store).ok()) return false;
    const auto match = LookUp(**store, identity_, spec_, prompt.tokens);
    return match.n_tokens == 41 && match.warnings.empty() &&
           IsExact(match, identity_, spec_, prompt.tokens);
  }
  void ExpectOneCopyAndNoLeftovers() const {
    int n_files = 0;
    for (const auto& entry : fs::recursive_directory_iterator(root_)) {
      n_files += entry.is_regular_file() ? 1 : 0;
    }
    // Blocks, manifest and note, VERSION and usage.
    EXPECT_EQ(n_files, 3 + 2 + 2);
  }

  TempDir dir_;
  std::string root_ = dir_.path() + "/s";
  KvSpec spec_ = TinySpec();
  KvIdentity identity_ = TinyIdentity(spec_);
};

TEST_F(StoreSharing, ThreadsThatSaveOnePromptLeaveOneGoodCopy) {
  std::vector<std::thread> threads;
  std::atomic<int> n_good{0};
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] { n_good += SaveAndFind() ? 1 : 0; });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(n_good, 8);
  ExpectOneCopyAndNoLeftovers();
}

TEST_F(StoreSharing, ProcessesThatSaveOnePromptLeaveOneGoodCopy) {
  std::vector<pid_t> children;
  for (int i = 0; i < 8; ++i) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(SaveAndFind() ? 0 : 1);
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  ExpectOneCopyAndNoLeftovers();
}

// Bytes of this process's mappings of files below `root`: "Pss" counts a page
// that n processes share as a page/n, "Rss" as a whole page.
std::uint64_t MappedBytes(const std::string& root, const std::string& kind) {
  std::ifstream maps("/proc/self/smaps");
  std::string line;
  bool ours = false;
  std::uint64_t bytes = 0;
  while (std::getline(maps, line)) {
    const std::string key = line.substr(0, line.find(' '));
    if (!key.ends_with(":")) {
      ours = line.find(root) != std::string::npos;
    } else if (ours && key == kind + ":") {
      bytes += std::stoull(line.substr(key.size())) * 1024;
    }
  }
  return bytes;
}

// 8 processes go on from one stored prompt of 8,192 tokens: its keys and values
// are in memory once.
TEST_F(StoreSharing, ProcessesThatShareAPromptShareItsMemory) {
  const KvSpec spec(UniformKv{.n_layers = 2,
                              .n_heads = 2,
                              .head_dim = 32,
                              .key_format = KvFormat::kF16,
                              .value_format = KvFormat::kF16});
  const KvIdentity identity = TinyIdentity(spec);
  const TinyPrompt prompt(identity, spec, TinyTokens(8192));
  ASSERT_TRUE(prompt.SaveBlocks(*KvStore::Open(root_).value()).ok());
  const std::uint64_t kv_bytes = 8192 * spec.bytes_per_token();

  constexpr int kProcesses = 8;
  struct Shared {
    std::atomic<int> n_loaded, n_measured;
    std::atomic<std::uint64_t> pss, rss;
  };
  void* memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto* shared = new (memory) Shared{};
  const auto wait_for = [](const std::atomic<int>& count) {
    for (int i = 0; i < 6000 && count < kProcesses; ++i) ::usleep(10'000);
    return count == kProcesses;
  };
  std::vector<pid_t> children;
  for (int i = 0; i < kProcesses; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      StoreOptions options;
      options.tidy_in_background = false;  // _exit waits for no thread
      const auto store = KvStore::Open(root_, options).value();
      const auto match = LookUp(*store, identity, spec, prompt.tokens);
      const bool exact = match.n_tokens == 8192;  // and its checksums were read
      ++shared->n_loaded;
      const bool together = wait_for(shared->n_loaded);
      shared->pss += MappedBytes(root_, "Pss");
      shared->rss += MappedBytes(root_, "Rss");
      ++shared->n_measured;
      ::_exit(exact && together && wait_for(shared->n_measured) ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  const auto n = static_cast<std::uint64_t>(kProcesses);
  EXPECT_GE(shared->rss, n * kv_bytes) << "each has all of it mapped";
  // Once, and a header page for each block.
  EXPECT_GE(shared->pss, kv_bytes);
  EXPECT_LE(shared->pss, kv_bytes * 11 / 10 + 128 * 4096);
  ::munmap(memory, sizeof(Shared));
}

TEST_F(StoreSharing, AMappedBlockOutlivesItsFileAndItsStore) {
  ASSERT_TRUE(SaveAndFind());
  const auto tokens = TinyTokens(41);
  StoreMatch match =
      LookUp(*KvStore::Open(root_).value(), identity_, spec_, tokens);
  fs::remove_all(root_);
  EXPECT_EQ(match.n_tokens, 41);
  EXPECT_TRUE(IsExact(match, identity_, spec_, tokens));
}

TEST_F(StoreSharing, OpeningRemovesDeadWritersFilesAndNoOthers) {
  ASSERT_TRUE(SaveAndFind());
  // A child dies between writing and renaming.
  const std::string prompts = root_ + "/prompts";
  const pid_t child = ::fork();
  if (child == 0) {
    auto folder = Directory::Open(FileOps::System(), prompts);
    auto pending = folder->Create("dead", 4);
    ::_exit(pending.ok() ? 0 : 1);  // no destructor runs
  }
  int status = 1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  auto folder = Directory::Open(FileOps::System(), prompts);
  auto alive = folder->Create("alive", 4);
  ASSERT_TRUE(alive.ok());
  // Another machine's writer: its process id says nothing here.
  const std::string foreign = prompts + "/x.tmp-00000000-1-0";
  const std::string old = prompts + "/y.tmp-00000000-1-0";
  std::ofstream(foreign) << "x";
  std::ofstream(old) << "x";
  fs::last_write_time(old,
                      fs::file_time_type::clock::now() - std::chrono::hours(2));

  ASSERT_TRUE(KvStore::Open(root_).ok());
  int n_dead = 0, n_alive = 0;
  for (const auto& entry : fs::directory_iterator(prompts)) {
    const std::string name = entry.path().filename().string();
    n_dead += name.starts_with("dead") ? 1 : 0;
    n_alive += name.starts_with("alive") ? 1 : 0;
  }
  EXPECT_EQ(n_dead, 0);
  EXPECT_EQ(n_alive, 1);
  EXPECT_TRUE(fs::exists(foreign));
  EXPECT_FALSE(fs::exists(old));
}

TEST_F(StoreSharing, OnlyAStoreOrAnEmptyDirectoryIsOpened) {
  const std::string taken = dir_.path() + "/taken";
  fs::create_directory(taken);
  EXPECT_TRUE(KvStore::Open(taken).ok());  // empty
  const std::string notes = dir_.path() + "/notes";
  fs::create_directory(notes);
  std::ofstream(notes + "/diary.txt") << "x";
  EXPECT_EQ(KvStore::Open(notes).error().code, Code::kInvalidArgument);
  EXPECT_EQ(KvStore::Open(notes + "/diary.txt").error().code,
            Code::kInvalidArgument);
  std::ofstream(taken + "/VERSION") << "hearth store 2\n";
  EXPECT_EQ(KvStore::Open(taken).error().code, Code::kIncompatible);
}

TEST_F(StoreSharing, NoPromptTextIsStoredUnlessAskedFor) {
  const TinyPrompt prompt(identity_, spec_, TinyTokens(41));
  auto store = KvStore::Open(root_).value();
  ASSERT_TRUE(prompt.SaveTo(*store).ok());
  const std::string note = root_ + "/prompts/" +
                           PromptStem("tiny", prompt.blocks.back().id) +
                           ".meta.json";
  EXPECT_EQ(ReadTextFile(note)->find("preview"), std::string::npos);
  ASSERT_TRUE(prompt.SaveTo(*store, "Once upon \xff a time").ok());
  EXPECT_NE(ReadTextFile(note)->find("Once upon"), std::string::npos);
}

}  // namespace
}  // namespace hearth
