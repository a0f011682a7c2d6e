// What a lookup finds against what a search through all files would find:
// prompts that part anywhere, saved one after the other, with files deleted at
// random.
#include <gtest/gtest.h>

#include <filesystem>
#include <random>
#include <set>

#include "store/directory/dir_store.h"
#include "store/directory/layout.h"
#include "store/tests/all_images.h"
#include "store/tests/store_testing.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

namespace fs = std::filesystem;

using Tokens = std::vector<std::int32_t>;

class StoreLongestMatch : public testing::Test {
 protected:
  std::unique_ptr<KvStore> OpenStore() {
    StoreOptions options;
    options.tidy_in_background = false;
    options.file_ops = &ops_;
    return KvStore::Open(root_, options).value();
  }
  // A prompt that goes on from an earlier one, from somewhere inside it, or
  // from nothing.
  Tokens RandomPrompt() {
    Tokens tokens;
    if (!prompts_.empty() && random_() % 8 != 0) {
      const Tokens& before = prompts_[random_() % prompts_.size()];
      tokens.assign(before.begin(),
                    before.begin() + static_cast<std::ptrdiff_t>(
                                         random_() % (before.size() + 1)));
    }
    const std::size_t n = 1 + random_() % 40;
    for (std::size_t i = 0; i < n; ++i) {
      tokens.push_back(static_cast<std::int32_t>(random_() % 3));
    }
    return tokens;
  }
  void DeleteSome(int one_in) {
    std::vector<fs::path> files;
    for (const auto& entry :
         fs::recursive_directory_iterator(root_ + "/blocks")) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    for (const fs::path& path : files) {
      if (random_() % static_cast<unsigned>(one_in) == 0) fs::remove(path);
    }
  }
  void Check(KvStore& store, const Tokens& tokens, std::size_t first_block) {
    const BlockChain prompt(identity_, tokens, 16);
    if (first_block > prompt.n_full()) return;
    const AllImages images(root_);
    std::size_t next = first_block;
    while (next < prompt.n_full() && images.Has(prompt[next].id)) ++next;
    const int n_full = static_cast<int>(prompt.BeginOf(next));
    const auto [exact, any] = images.LongestStart(
        prompt.ParentOf(next),
        prompt.tokens().subspan(static_cast<std::size_t>(n_full)));
    const StoreMatch match = store.Lookup(prompt, spec_, first_block);
    EXPECT_GE(match.end(), n_full + exact);
    EXPECT_LE(match.end(), n_full + any);
    EXPECT_EQ(match.miss_reason.empty(),
              match.end() == static_cast<int>(tokens.size()));
    EXPECT_TRUE(match.warnings.empty());
    if (first_block == 0) {
      EXPECT_TRUE(IsExact(match, identity_, spec_, tokens));
    }
    EXPECT_GE(store.CountStored(prompt, first_block), n_full);
    // Every manifest is there and is among the last used: but for the token
    // that is computed anyway, the beginning of any block is found.
    if (all_manifests_) {
      EXPECT_GE(match.end() + 1, n_full + any);
    }
  }

  class NoFlush : public FileOps {
   public:
    int Fsync(int) override { return 0; }
    void StartWriteback(int) override {}
  } ops_;
  TempDir dir_;
  std::string root_ = dir_.path() + "/s";
  KvSpec spec_ = TinySpec();
  KvIdentity identity_ = TinyIdentity(spec_);
  std::mt19937 random_{20'26};
  std::vector<Tokens> prompts_;
  bool all_manifests_ = true;
};

TEST_F(StoreLongestMatch, IsWhatASearchThroughAllFilesFinds) {
  for (int round = 0; round < 6; ++round) {
    fs::remove_all(root_);
    prompts_.clear();
    for (int i = 0; i < 12; ++i) {
      prompts_.push_back(RandomPrompt());
      const TinyPrompt prompt(identity_, spec_, prompts_.back());
      ASSERT_TRUE(prompt.SaveTo(*OpenStore()).ok());
    }
    const auto store = OpenStore();
    all_manifests_ = round < 3;
    if (!all_manifests_) DeleteSome(/*one_in=*/4 + round);
    for (int i = 0; i < 40; ++i) {
      const Tokens tokens =
          i < 12 ? prompts_[static_cast<std::size_t>(i)] : RandomPrompt();
      Check(*store, tokens, random_() % 3);
      Check(*store, tokens, 0);
      if (HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace hearth
