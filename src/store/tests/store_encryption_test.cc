// A store with a key: nothing readable in it, no wrong byte out of it.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "store/admin/store_admin.h"
#include "store/directory/dir_store.h"
#include "store/directory/layout.h"
#include "store/tests/store_testing.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

namespace fs = std::filesystem;

std::shared_ptr<const Vault> VaultOf(std::uint8_t fill) {
  Vault::Key key;
  key.fill(fill);
  return std::make_shared<const Vault>(key);
}

std::string ReadAll(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

void WriteAll(const std::string& path, const std::string& bytes) {
  fs::remove(path);
  std::ofstream(path, std::ios::binary) << bytes;
}

class StoreEncryption : public testing::Test {
 protected:
  // As the engine does: names depend on the key.
  KvIdentity IdentityFor(const Vault* vault) const {
    KvIdentity identity = TinyIdentity(spec_);
    if (vault != nullptr) identity.name_space = ToHex(vault->name_key());
    return identity;
  }
  std::unique_ptr<KvStore> OpenStore(std::shared_ptr<const Vault> vault) const {
    StoreOptions options;
    options.vault = std::move(vault);
    options.tidy_in_background = false;
    return KvStore::Open(root_, options).value();
  }
  void Save(std::shared_ptr<const Vault> vault,
            const std::string& preview = "") {
    const TinyPrompt prompt(IdentityFor(vault.get()), spec_, tokens_);
    ASSERT_TRUE(prompt.SaveTo(*OpenStore(vault), preview).ok());
  }
  StoreMatch Find(std::shared_ptr<const Vault> vault) const {
    const KvIdentity identity = IdentityFor(vault.get());
    StoreMatch match = LookUp(*OpenStore(vault), identity, spec_, tokens_);
    EXPECT_TRUE(IsExact(match, identity, spec_, tokens_));
    return match;
  }
  std::vector<std::string> Files(const std::string& suffix) const {
    std::vector<std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(root_)) {
      if (entry.is_regular_file() && entry.path().string().ends_with(suffix)) {
        files.push_back(entry.path().string());
      }
    }
    std::sort(files.begin(), files.end());
    return files;
  }

  TempDir dir_;
  std::string root_ = dir_.path() + "/s";
  KvSpec spec_ = TinySpec();
  std::vector<std::int32_t> tokens_ = TinyTokens(41);
  std::shared_ptr<const Vault> key_ = VaultOf(1);
};

TEST_F(StoreEncryption, WhatIsSavedIsFoundWithItsKeyAlone) {
  Save(key_);
  EXPECT_EQ(Find(key_).n_tokens, 41);
  const StoreMatch other = Find(VaultOf(2));
  EXPECT_EQ(other.n_tokens, 0);
  EXPECT_NE(other.miss_reason.find("encrypted under another key"),
            std::string::npos)
      << other.miss_reason;
  const StoreMatch none = Find(nullptr);
  EXPECT_EQ(none.n_tokens, 0);
  EXPECT_NE(none.miss_reason.find("its key was not given"), std::string::npos);
  EXPECT_TRUE(none.warnings.empty() && other.warnings.empty());
  // All three live side by side.
  Save(nullptr);
  Save(VaultOf(2));
  for (const auto& vault : {key_, VaultOf(2), std::shared_ptr<const Vault>()}) {
    EXPECT_EQ(Find(vault).n_tokens, 41);
  }
}

TEST_F(StoreEncryption, NothingOfThePromptIsReadable) {
  Save(key_, "a preview that was asked for");
  const TinyPrompt prompt(IdentityFor(key_.get()), spec_, tokens_);
  const auto tokens = AsText(std::as_bytes(std::span(tokens_).first(4)));
  const auto payload = AsText(ByteSpan(prompt.payloads[0]).first(16));
  int n_files = 0;
  for (const std::string& path : Files("")) {
    const std::string bytes = ReadAll(path);
    EXPECT_EQ(bytes.find(tokens), std::string::npos) << path;
    EXPECT_EQ(bytes.find(payload), std::string::npos) << path;
    EXPECT_EQ(bytes.find("preview"), std::string::npos) << path;
    ++n_files;
  }
  EXPECT_EQ(n_files, 3 + 2 + 2);
  // Nor can a guessed prompt be looked for by its name.
  const BlockChain plain(IdentityFor(nullptr), tokens_, spec_.block_tokens);
  for (const std::string& path : Files(".kv")) {
    EXPECT_EQ(path.find(ToHex(plain[0].id)), std::string::npos);
    EXPECT_EQ(path.find(ToHex(plain[1].id)), std::string::npos);
  }
  EXPECT_NE(StoreAdmin::Open(root_, nullptr, key_)
                ->Show("tiny")
                ->note.find("asked for"),
            std::string::npos);
}

// A damaged or replaced file is a miss, and cannot fail twice.
TEST_F(StoreEncryption, EveryDamageIsAMissOnce) {
  Save(key_);
  for (const std::string& path : Files(".kv")) {
    const std::string good = ReadAll(path);
    const auto check = [&](const std::string& bad, const std::string& what) {
      WriteAll(path, bad);
      const StoreMatch first = Find(key_);
      EXPECT_LT(first.n_tokens, 41) << what;
      EXPECT_EQ(first.warnings.size(), 1u) << what;
      EXPECT_FALSE(fs::exists(path)) << what;
      EXPECT_TRUE(Find(key_).warnings.empty()) << what;
    };
    for (std::size_t i = 0; i < good.size(); i += i < 150 ? 1 : 331) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ (1 << (i % 8)));
      check(bad, "flip at " + std::to_string(i));
      check(good.substr(0, i), "cut to " + std::to_string(i));
      if (HasFailure()) return;
    }
    check("HKVB\r\n\x1a\n" + good.substr(8), "another magic");
    WriteAll(path, good);
  }
  EXPECT_EQ(Find(key_).n_tokens, 41);
}

TEST_F(StoreEncryption, AdministrationNeedsTheKeyAndHarmsNothingWithout) {
  Save(key_);
  const auto without = StoreAdmin::Open(root_);
  EXPECT_TRUE(without->List()->empty());
  EXPECT_EQ(*without->CountLocked(), 1u);
  const auto verified = without->Verify(/*set_aside=*/true);
  EXPECT_EQ(verified->n_locked, 4u);
  EXPECT_TRUE(verified->defects.empty());
  EXPECT_EQ(without->Show("tiny").error().code, Code::kIncompatible);
  ASSERT_TRUE(without->Pin("tiny").ok());
  ASSERT_TRUE(without->Gc({}).ok());
  EXPECT_EQ(without->Wipe({"tiny"}).error().code, Code::kIncompatible);

  const auto with = StoreAdmin::Open(root_, nullptr, key_);
  ASSERT_EQ(with->List()->size(), 1u);
  EXPECT_EQ(with->List()->front().n_tokens_usable, 41u);
  EXPECT_TRUE(with->List()->front().pinned);
  EXPECT_TRUE(with->Verify(true)->defects.empty());
  // Another machine with the same key.
  const std::string bundle = dir_.path() + "/bundle";
  ASSERT_TRUE(with->Export("tiny", bundle).ok());
  EXPECT_TRUE(LooksSealed(AsBytes(ReadAll(bundle))));
  ASSERT_TRUE(with->Wipe({"tiny"}).ok());
  EXPECT_EQ(Find(key_).n_tokens, 0);
  EXPECT_EQ(StoreAdmin::Open(root_)->Import(bundle, {}).error().code,
            Code::kIncompatible);
  ASSERT_TRUE(with->Import(bundle, {}).ok());
  EXPECT_EQ(Find(key_).n_tokens, 41);
}

TEST_F(StoreEncryption, TheBudgetHoldsAndEvictionKeepsTheBeginningOfAChain) {
  StoreOptions options;
  options.vault = key_;
  options.disk_budget_bytes = 30'000;
  options.tidy_in_background = false;
  const KvIdentity identity = IdentityFor(key_.get());
  for (int i = 0; i < 6; ++i) {
    const TinyPrompt prompt(identity, spec_, TinyTokens(41, 100 + i));
    const auto store = KvStore::Open(root_, options).value();
    // Full blocks alone, as a killed prefill leaves them.
    ASSERT_TRUE(prompt.SaveBlocks(*store, 2).ok());
    EXPECT_EQ(LookUp(*store, identity, spec_, prompt.tokens).n_tokens, 32);
    std::uint64_t bytes = 0;
    for (const std::string& path : Files("")) bytes += fs::file_size(path);
    EXPECT_LE(bytes, options.disk_budget_bytes);
  }
}

TEST_F(StoreEncryption, ABundleIsSealed) {
  const KvIdentity identity = IdentityFor(key_.get());
  const TinyPrompt prompt(identity, spec_, tokens_);
  const std::string path = dir_.path() + "/one.kvcache";
  ASSERT_TRUE(SaveBundle(path, prompt, nullptr, key_).ok());
  const auto find = [&](std::shared_ptr<const Vault> vault) {
    return LookupBundle(path, identity, spec_, tokens_, std::move(vault));
  };
  EXPECT_EQ(find(key_).n_tokens, 41);
  EXPECT_TRUE(IsExact(find(key_), identity, spec_, tokens_));
  EXPECT_EQ(find(nullptr).n_tokens, 0);
  EXPECT_NE(find(nullptr).miss_reason.find("its key was not given"),
            std::string::npos);
  EXPECT_EQ(find(VaultOf(2)).n_tokens, 0);
}

}  // namespace
}  // namespace hearth
