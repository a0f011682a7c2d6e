// Kill -9 at random instants, and many processes at once. A few seconds here;
// HEARTH_KILLS=1000 and HEARTH_STRESS_SECONDS=60 for the long runs,
// HEARTH_KILL_MS for how long a child may live (on a busy machine it gets
// nowhere in the usual 30). The outcome is printed.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <random>
#include <thread>

#include "base/files/temporary_name.h"
#include "store/budget/space.h"
#include "store/directory/catalog.h"
#include "store/directory/dir_store.h"
#include "store/tests/store_testing.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPrompts = 12;

int FromEnvironment(const char* name, int fallback) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::atoi(text) : fallback;
}

class StoreStress : public testing::Test {
 protected:
  // Seen by parent and children.
  struct Shared {
    std::array<std::atomic<int>, kPrompts> saved;
    std::atomic<std::uint64_t> n_saves, n_lookups, n_tokens_found, n_refused;
  };

  StoreStress() {
    spec_ = UniformKv{.n_layers = 4,
                      .n_heads = 2,
                      .head_dim = 32,
                      .key_format = KvFormat::kF16,
                      .value_format = KvFormat::kF16,
                      .block_tokens = 16};
    identity_ = TinyIdentity(spec_);
    // Three families: a prompt, two that it grows into, each ending inside a
    // block, and one that goes another way after 32 tokens.
    for (std::size_t i = 0; i < kPrompts; ++i) {
      constexpr int kLengths[] = {39, 60, 90, 70};
      auto tokens = TinyTokens(kLengths[i / 3], 1000 * static_cast<int>(i % 3));
      for (std::size_t t = 32; i / 3 == 3 && t < tokens.size(); ++t) {
        tokens[t] += 3;
      }
      prompts_.push_back(
          std::make_unique<TinyPrompt>(identity_, spec_, tokens));
    }
    void* memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    shared_ = new (memory) Shared{};
  }
  ~StoreStress() override { ::munmap(shared_, sizeof(Shared)); }

  StoreOptions Options() const {
    StoreOptions options;
    options.disk_budget_bytes = budget_;
    return options;
  }

  // What a process of the engine does, for ever or until `until`. Gives an exit
  // code: 0 all well, 3 a wrong byte, 4 a store that cannot be opened, 5 a file
  // seen damaged, 6 a save that failed for another reason than the budget.
  int Work(unsigned seed, std::chrono::steady_clock::time_point until) {
    std::mt19937 random(seed);
    while (std::chrono::steady_clock::now() < until) {
      auto store = KvStore::Open(root_, Options());
      if (!store.ok()) return 4;
      for (int round = 0; round < 4; ++round) {
        const std::size_t i = random() % kPrompts;
        const TinyPrompt& prompt = *prompts_[i];
        const auto match = LookUp(**store, identity_, spec_, prompt.tokens);
        if (!IsExact(match, identity_, spec_, prompt.tokens)) return 3;
        if (!match.warnings.empty()) return 5;
        ++shared_->n_lookups;
        shared_->n_tokens_found += static_cast<std::uint64_t>(match.n_tokens);
        const auto saved = prompt.SaveTo(**store);
        if (saved.ok()) {
          shared_->saved[i] = 1;
          ++shared_->n_saves;
        } else if (saved.error().code == Code::kResourceFull) {
          ++shared_->n_refused;
        } else {
          return 6;
        }
      }
    }
    return 0;
  }

  // Opens the store as the next launch would; then everything must be right.
  void ExpectSound() {
    StoreOptions options = Options();
    options.tidy_in_background = false;
    const auto store = KvStore::Open(root_, options).value();
    for (std::size_t i = 0; i < kPrompts; ++i) {
      const auto& tokens = prompts_[i]->tokens;
      const auto match = LookUp(*store, identity_, spec_, tokens);
      EXPECT_TRUE(IsExact(match, identity_, spec_, tokens));
      EXPECT_TRUE(match.warnings.empty()) << match.warnings[0];
      if (budget_ == 0 && shared_->saved[i] != 0) {
        ++n_acknowledged_;
        EXPECT_EQ(static_cast<std::size_t>(match.n_tokens), tokens.size())
            << match.miss_reason;
      }
      n_tokens_found_ += static_cast<std::uint64_t>(match.n_tokens);
      n_tokens_asked_ += tokens.size();
    }
    for (const auto& entry : fs::recursive_directory_iterator(root_)) {
      EXPECT_FALSE(IsTemporary(entry.path().filename().string()))
          << entry.path();
    }
    EXPECT_TRUE(budget_ == 0 || TotalBytes() <= budget_);
  }
  // Under the lock, so that no file changes its name while we count.
  std::uint64_t TotalBytes() const {
    const auto root = Directory::Open(FileOps::System(), root_);
    if (!root.ok()) return 0;
    const auto lock = SpaceLock::Take(*root, {});
    return lock.ok() ? ScanStore(*root)->total_bytes : 0;
  }

  void KillAtRandomInstants(int n_kills) {
    std::mt19937 random(20'24);
    const auto never =
        std::chrono::steady_clock::now() + std::chrono::hours(24);
    const auto longest_us =
        static_cast<unsigned>(FromEnvironment("HEARTH_KILL_MS", 30)) * 1000;
    for (int i = 0; i < n_kills && !HasFailure(); ++i) {
      const unsigned seed = static_cast<unsigned>(random());
      const pid_t child = ::fork();
      if (child == 0) ::_exit(Work(seed, never));
      std::this_thread::sleep_for(
          std::chrono::microseconds(random() % longest_us));
      ::kill(child, SIGKILL);
      int status = 0;
      ASSERT_EQ(::waitpid(child, &status, 0), child);
      EXPECT_TRUE(WIFSIGNALED(status)) << "exit " << WEXITSTATUS(status);
      if (budget_ == 0 && random() % 4 == 0) {
        fs::remove_all(root_);  // else there is soon nothing left to write
        for (auto& saved : shared_->saved) saved = 0;
        continue;
      }
      ExpectSound();
    }
    std::printf(
        "%d kills: %llu saves done, %llu refused; the next launches asked %llu "
        "times for a prompt saved for sure and found %.1f %% of all tokens "
        "they asked for\n",
        n_kills, static_cast<unsigned long long>(shared_->n_saves),
        static_cast<unsigned long long>(shared_->n_refused),
        static_cast<unsigned long long>(n_acknowledged_),
        100.0 * static_cast<double>(n_tokens_found_) /
            static_cast<double>(std::max<std::uint64_t>(1, n_tokens_asked_)));
  }

  TempDir dir_;
  std::string root_ = dir_.path() + "/s";
  KvSpec spec_;
  KvIdentity identity_;
  std::vector<std::unique_ptr<TinyPrompt>> prompts_;
  Shared* shared_ = nullptr;
  std::uint64_t budget_ = 0;
  std::uint64_t n_tokens_found_ = 0, n_tokens_asked_ = 0, n_acknowledged_ = 0;
};

TEST_F(StoreStress, KilledWritersLoseNothingThatWasSaved) {
  KillAtRandomInstants(FromEnvironment("HEARTH_KILLS", 100) / 2);
}

TEST_F(StoreStress, KilledEvictorsLeaveASoundStoreWithinItsBudget) {
  budget_ = 300'000;  // about half of all prompts
  KillAtRandomInstants(FromEnvironment("HEARTH_KILLS", 100) / 2);
}

TEST_F(StoreStress, ManyProcessesHoldTheBudgetAndNeverSeeAForeignByte) {
  budget_ = 300'000;
  const int n_seconds = FromEnvironment("HEARTH_STRESS_SECONDS", 3);
  const auto until =
      std::chrono::steady_clock::now() + std::chrono::seconds(n_seconds);
  std::vector<pid_t> children;
  for (unsigned seed = 1; seed <= 8; ++seed) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(Work(seed, until));
    children.push_back(child);
  }
  std::uint64_t most = 0;
  while (std::chrono::steady_clock::now() < until) {
    most = std::max(most, TotalBytes());
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  for (const pid_t child : children) {
    int status = 1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << WEXITSTATUS(status);
  }
  EXPECT_LE(most, budget_);
  ExpectSound();
  std::printf(
      "8 processes, %d s: %llu lookups, %llu saves, %llu refused, at "
      "most %llu of %llu bytes\n",
      n_seconds, static_cast<unsigned long long>(shared_->n_lookups),
      static_cast<unsigned long long>(shared_->n_saves),
      static_cast<unsigned long long>(shared_->n_refused),
      static_cast<unsigned long long>(most),
      static_cast<unsigned long long>(budget_));
}

}  // namespace
}  // namespace hearth
