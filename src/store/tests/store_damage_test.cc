// Every byte flipped and every truncation of every kind of file: never a crash,
// never a byte that the model did not compute.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>

#include "store/admin/store_admin.h"
#include "store/directory/dir_store.h"
#include "store/directory/layout.h"
#include "store/tests/store_testing.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

namespace fs = std::filesystem;

std::string ReadAll(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

// A new file each time: truncating one makes some file systems flush it.
void WriteAll(const std::string& path, const std::string& bytes) {
  fs::remove(path);
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

// Calls `check` with the file damaged in every way; `what` says how.
void ForEveryDamage(const std::string& path,
                    const std::function<void(const std::string& what)>& check) {
  const std::string good = ReadAll(path);
  ASSERT_FALSE(good.empty());
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ (1 << (i % 8)));
    WriteAll(path, bad);
    check("flip at " + std::to_string(i));
    if (testing::Test::HasFailure()) return;
  }
  for (std::size_t n = 0; n < good.size(); ++n) {
    WriteAll(path, good.substr(0, n));
    check("cut to " + std::to_string(n));
    if (testing::Test::HasFailure()) return;
  }
  for (const std::size_t n : {1, 64, 4096}) {
    WriteAll(path, good + std::string(n, '\0'));
    check("longer by " + std::to_string(n));
    if (testing::Test::HasFailure()) return;
  }
  WriteAll(path, good);
}

class StoreDamage : public testing::Test {
 protected:
  StoreDamage()
      : spec_(TinySpec()),
        identity_(TinyIdentity(spec_)),
        prompt_(identity_, spec_, TinyTokens(41)) {
    store_ = KvStore::Open(root_).value();
    EXPECT_TRUE(prompt_.SaveTo(*store_).ok());
  }
  std::string BlockPath(std::size_t index) const {
    const Digest& id = prompt_.blocks[index].id;
    return root_ + "/blocks/" + BlockFolder(id) + "/" + BlockName(id);
  }
  std::string ManifestPath() const {
    return root_ + "/prompts/" + PromptStem("tiny", prompt_.blocks[2].id) +
           ".kvcache";
  }
  // The match must be exact, `n_tokens` long, with a reason and a warning that
  // name the file, which must be gone from its place.
  void ExpectSetAside(const std::string& path, int n_tokens,
                      const std::string& what) {
    const StoreMatch match = LookUp(*store_, identity_, spec_, prompt_.tokens);
    EXPECT_TRUE(IsExact(match, identity_, spec_, prompt_.tokens)) << what;
    EXPECT_EQ(match.n_tokens, n_tokens) << what;
    EXPECT_NE(match.miss_reason.find(path), std::string::npos)
        << what << ": " << match.miss_reason;
    ASSERT_EQ(match.warnings.size(), 1u) << what;
    EXPECT_NE(match.warnings[0].find(path), std::string::npos) << what;
    EXPECT_FALSE(fs::exists(path)) << what;
    for (const auto& entry : fs::directory_iterator(root_ + "/quarantine")) {
      fs::remove_all(entry.path());
    }
  }

  TempDir dir_;
  std::string root_ = dir_.path() + "/s";
  KvSpec spec_;
  KvIdentity identity_;
  TinyPrompt prompt_;
  std::unique_ptr<KvStore> store_;
};

TEST_F(StoreDamage, EveryDamageOfABlockFileEndsTheMatchBeforeIt) {
  const std::string path = BlockPath(1);
  ForEveryDamage(
      path, [&](const std::string& what) { ExpectSetAside(path, 16, what); });
}

TEST_F(StoreDamage, EveryDamageOfATailCostsOnlyTheTail) {
  const std::string path = BlockPath(2);
  ForEveryDamage(
      path, [&](const std::string& what) { ExpectSetAside(path, 32, what); });
}

// Lookups do without it; `hearth cache verify` finds the damage.
TEST_F(StoreDamage, EveryDamageOfAManifestCostsOnlyTheName) {
  const std::string path = ManifestPath();
  ForEveryDamage(path, [&](const std::string& what) {
    EXPECT_EQ(LookUp(*store_, identity_, spec_, prompt_.tokens).n_tokens, 41);
    const auto admin = StoreAdmin::Open(root_);
    EXPECT_TRUE(admin->List()->empty()) << what;
    const auto report = admin->Verify(/*set_aside=*/true);
    ASSERT_EQ(report->defects.size(), 1u) << what;
    EXPECT_EQ(report->defects[0].path, path) << what;
    EXPECT_FALSE(fs::exists(path)) << what;
    fs::remove_all(root_ + "/quarantine");
  });
}

// A block in two pieces: damage of the second leaves the first, damage of the
// first makes the second useless, and neither is ever read wrong.
TEST_F(StoreDamage, EveryDamageOfAPieceEndsTheMatchBeforeIt) {
  const TinyPrompt longer(identity_, spec_, TinyTokens(48));
  ASSERT_TRUE(longer.SaveTo(*store_).ok());
  const auto check = [&](const std::string& path, int n_left) {
    ForEveryDamage(path, [&](const std::string& what) {
      const StoreMatch match = LookUp(*store_, identity_, spec_, longer.tokens);
      EXPECT_TRUE(IsExact(match, identity_, spec_, longer.tokens)) << what;
      EXPECT_EQ(match.n_tokens, n_left) << what;
      EXPECT_EQ(match.warnings.size(), 1u) << what;
      EXPECT_FALSE(fs::exists(path)) << what;
      fs::remove_all(root_ + "/quarantine");
    });
    ASSERT_EQ(LookUp(*store_, identity_, spec_, longer.tokens).n_tokens, 48);
  };
  const Digest& end = longer.blocks[2].id;
  check(root_ + "/blocks/" + BlockFolder(end) + "/" + BlockName(end), 41);
  check(BlockPath(2), 32);
}

TEST_F(StoreDamage, EveryDamageOfABundleIsAShorterExactMatch) {
  const std::string path = dir_.path() + "/bundle";
  const auto saved = SaveBundle(path, prompt_);
  ASSERT_TRUE(saved.ok()) << saved.error().message;
  ASSERT_EQ(LookupBundle(path, identity_, spec_, prompt_.tokens).n_tokens, 41);
  ForEveryDamage(path, [&](const std::string& what) {
    const StoreMatch match =
        LookupBundle(path, identity_, spec_, prompt_.tokens);
    EXPECT_TRUE(IsExact(match, identity_, spec_, prompt_.tokens)) << what;
    EXPECT_LT(match.n_tokens, 41) << what;
    EXPECT_NE(match.miss_reason, "") << what;
    EXPECT_TRUE(fs::exists(path)) << what;  // the user's own file stays
  });
}

TEST_F(StoreDamage, DamageOfTheSidecarIsOfNoConsequence) {
  fs::path path = ManifestPath();
  path.replace_extension(".meta.json");
  WriteAll(path, "{");
  EXPECT_EQ(LookUp(*store_, identity_, spec_, prompt_.tokens).n_tokens, 41);
}

TEST_F(StoreDamage, ADamagedBlockIsReplacedByTheNextSave) {
  const std::string path = BlockPath(0);
  std::string bytes = ReadAll(path);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  WriteAll(path, bytes);
  EXPECT_EQ(LookUp(*store_, identity_, spec_, prompt_.tokens).n_tokens, 0);
  ASSERT_TRUE(prompt_.SaveBlock(*store_, 0).ok());
  EXPECT_EQ(LookUp(*store_, identity_, spec_, prompt_.tokens).n_tokens, 41);
}

TEST_F(StoreDamage, ABlockUnderAnotherNameIsSetAside) {
  fs::copy_file(BlockPath(1), BlockPath(0),
                fs::copy_options::overwrite_existing);
  ExpectSetAside(BlockPath(0), 0, "renamed block");
}

TEST_F(StoreDamage, LinksInsideTheRootAreNotFollowed) {
  const std::string outside = dir_.path() + "/outside.kv";
  fs::rename(BlockPath(0), outside);
  fs::create_symlink(outside, BlockPath(0));
  ExpectSetAside(BlockPath(0), 0, "linked block");
  EXPECT_TRUE(fs::exists(outside));

  // A linked folder: neither read through nor written through.
  const std::string folder = fs::path(BlockPath(0)).parent_path();
  fs::rename(folder, dir_.path() + "/folder");
  fs::rename(outside, dir_.path() + "/folder/" +
                          fs::path(BlockPath(0)).filename().string());
  fs::create_symlink(dir_.path() + "/folder", folder);
  const StoreMatch match = LookUp(*store_, identity_, spec_, prompt_.tokens);
  EXPECT_EQ(match.n_tokens, 0);
  EXPECT_EQ(match.warnings.size(), 1u);
  // The link is set aside, and the block is written inside the store.
  const fs::path kept = dir_.path() + "/folder";
  const auto n_before =
      std::distance(fs::directory_iterator(kept), fs::directory_iterator());
  EXPECT_TRUE(prompt_.SaveBlock(*store_, 0).ok());
  EXPECT_FALSE(fs::is_symlink(folder));
  EXPECT_EQ(
      std::distance(fs::directory_iterator(kept), fs::directory_iterator()),
      n_before);
  EXPECT_EQ(LookUp(*store_, identity_, spec_, prompt_.tokens).n_tokens, 41);
}

TEST_F(StoreDamage, WhatIsNoFileIsSetAside) {
  fs::remove(BlockPath(0));
  fs::create_directory(BlockPath(0));
  ExpectSetAside(BlockPath(0), 0, "directory");
  fs::create_directories(root_ + "/quarantine/" +
                         fs::path(BlockPath(0)).filename().string());
  ASSERT_EQ(::mkfifo(BlockPath(0).c_str(), 0600), 0);
  ExpectSetAside(BlockPath(0), 0, "pipe");
}

TEST_F(StoreDamage, EntriesSurviveTheLossOfEverythingElse) {
  fs::rename(root_, dir_.path() + "/moved");
  root_ = dir_.path() + "/moved";
  for (const char* name : {"VERSION", "models", "prompts", "quarantine"}) {
    fs::remove_all(root_ + "/" + name);
  }
  store_ = KvStore::Open(root_).value();
  EXPECT_EQ(LookUp(*store_, identity_, spec_, prompt_.tokens).n_tokens, 41);
}

TEST_F(StoreDamage, AVanishedStoreIsAMissAndIsMadeAgainBySaving) {
  fs::remove_all(root_);
  EXPECT_EQ(LookUp(*store_, identity_, spec_, prompt_.tokens).n_tokens, 0);
  ASSERT_TRUE(prompt_.SaveTo(*store_).ok());
  EXPECT_EQ(LookUp(*store_, identity_, spec_, prompt_.tokens).n_tokens, 41);
}

}  // namespace
}  // namespace hearth
