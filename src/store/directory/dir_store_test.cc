#include "store/directory/dir_store.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "store/tests/store_testing.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

namespace fs = std::filesystem;

class DirStoreTest : public testing::Test {
 protected:
  DirStoreTest() : spec_(TinySpec()), identity_(TinyIdentity(spec_)) {}

  std::unique_ptr<KvStore> OpenStore() {
    auto store = KvStore::Open(root_);
    EXPECT_TRUE(store.ok()) << store.error().message;
    return store.ok() ? std::move(store).value() : nullptr;
  }
  StoreMatch Find(std::span<const std::int32_t> tokens) {
    StoreMatch match = LookUp(*OpenStore(), identity_, spec_, tokens);
    EXPECT_TRUE(IsExact(match, identity_, spec_, tokens));
    return match;
  }
  void Save(const TinyPrompt& prompt) {
    const auto saved = prompt.SaveTo(*OpenStore());
    EXPECT_TRUE(saved.ok()) << saved.error().message;
  }

  TempDir dir_;
  std::string root_ = dir_.path() + "/store";
  KvSpec spec_;
  KvIdentity identity_;
};

TEST_F(DirStoreTest, SecondLaunchFindsTheWholePrompt) {
  const TinyPrompt prompt(identity_, spec_, TinyTokens(57));
  Save(prompt);
  const StoreMatch match = Find(prompt.tokens);
  EXPECT_EQ(match.n_tokens, 57);
  EXPECT_EQ(match.blocks.size(), 4u);
  EXPECT_EQ(match.miss_reason, "");
  EXPECT_TRUE(match.warnings.empty());
}

TEST_F(DirStoreTest, LongerPromptReusesTheTailOfAnEntry) {
  const TinyPrompt prompt(identity_, spec_, TinyTokens(57));
  Save(prompt);
  const StoreMatch match = Find(TinyTokens(100));
  EXPECT_EQ(match.n_tokens, 57);
  EXPECT_EQ(match.miss_reason, "tokens 57..99 are not stored");
}

TEST_F(DirStoreTest, ShorterPromptReusesTheFullBlocks) {
  Save(TinyPrompt(identity_, spec_, TinyTokens(57)));
  for (int n = 1; n <= 57; ++n) {
    const StoreMatch match = Find(TinyTokens(n));
    // A single token is computed anyway.
    EXPECT_EQ(match.n_tokens, n % 16 == 1 ? n - 1 : n) << n;
    EXPECT_EQ(match.miss_reason.empty(), match.n_tokens == n) << n;
  }
}

TEST_F(DirStoreTest, ChangedTokenCostsOnlyTheTokensFromItOn) {
  Save(TinyPrompt(identity_, spec_, TinyTokens(64)));
  for (std::size_t i = 0; i < 64; ++i) {
    auto tokens = TinyTokens(64);
    tokens[i] = 5;
    EXPECT_EQ(Find(tokens).n_tokens, static_cast<int>(i)) << i;
  }
}

TEST_F(DirStoreTest, EveryKeyFieldSeparatesEntries) {
  const TinyPrompt prompt(identity_, spec_, TinyTokens(57));
  Save(prompt);
  const auto store = OpenStore();
  KvIdentity other = identity_;
  other.model_id.bytes[31] ^= 1;
  EXPECT_EQ(LookUp(*store, other, spec_, prompt.tokens).n_tokens, 0);
  other = identity_;
  other.name_space = "x";
  EXPECT_EQ(LookUp(*store, other, spec_, prompt.tokens).n_tokens, 0);
  KvSpec wider = spec_;
  wider.SetFormat(KvFormat::kBF16);
  other = identity_;
  other.format_id = FormatId(wider);
  EXPECT_EQ(LookUp(*store, other, wider, prompt.tokens).n_tokens, 0);
  EXPECT_EQ(Find(prompt.tokens).n_tokens, 57);
}

TEST_F(DirStoreTest, DirectoriesAre0700AndFiles0600) {
  Save(TinyPrompt(identity_, spec_, TinyTokens(57)));
  int n_files = 0;
  EXPECT_EQ(fs::status(root_).permissions(), fs::perms(0700));
  for (const auto& entry : fs::recursive_directory_iterator(root_)) {
    EXPECT_EQ(entry.status().permissions(),
              fs::perms(entry.is_directory() ? 0700 : 0600))
        << entry.path();
    n_files += entry.is_regular_file() ? 1 : 0;
  }
  EXPECT_EQ(n_files, 4 + 2 + 2);  // blocks, manifest and note, VERSION, usage
}

}  // namespace
}  // namespace hearth
