#include "store/admin/store_admin.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "store/directory/dir_store.h"
#include "store/directory/layout.h"
#include "store/format/block_image.h"
#include "store/tests/store_testing.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

namespace fs = std::filesystem;

class StoreAdminTest : public testing::Test {
 protected:
  StoreAdminTest() { store_ = KvStore::Open(root_).value(); }

  std::string Save(const std::vector<std::int32_t>& tokens,
                   const std::string& model = "tiny") {
    const KvIdentity identity = TinyIdentity(spec_, model);
    const TinyPrompt prompt(identity, spec_, tokens);
    const auto saved = prompt.SaveTo(*store_);
    EXPECT_TRUE(saved.ok());
    return PromptStem(model, prompt.blocks.back().id);
  }
  StoreAdmin Admin() const { return StoreAdmin::Open(root_).value(); }
  int Found(const std::vector<std::int32_t>& tokens) const {
    return LookUp(*store_, identity_, spec_, tokens).n_tokens;
  }
  std::string BlockPath(const std::vector<std::int32_t>& tokens,
                        std::size_t index) const {
    const Digest id = BlockChain(identity_, tokens, 16)[index].id;
    return root_ + "/blocks/" + BlockFolder(id) + "/" + BlockName(id);
  }
  std::uint64_t TotalBytes() const {
    std::uint64_t bytes = 0;
    for (const auto& entry : fs::recursive_directory_iterator(root_)) {
      if (entry.is_regular_file()) bytes += entry.file_size();
    }
    return bytes;
  }

  TempDir dir_;
  std::string root_ = dir_.path() + "/s";
  KvSpec spec_ = TinySpec();
  KvIdentity identity_ = TinyIdentity(spec_);
  std::unique_ptr<KvStore> store_;
};

TEST_F(StoreAdminTest, ListTellsCountsSharingAndHoles) {
  auto a = TinyTokens(41), b = TinyTokens(50);
  b[45] = 3;
  const std::string stem_a = Save(a);
  Save(b);
  auto list = *Admin().List();
  ASSERT_EQ(list.size(), 2u);
  const PromptInfo& info = list[0].stem == stem_a ? list[0] : list[1];
  EXPECT_EQ(info.model_name, "tiny");
  EXPECT_EQ(info.n_tokens, 41u);
  EXPECT_EQ(info.n_blocks_full, 2u);
  EXPECT_EQ(info.n_blocks_present, 2u);
  EXPECT_EQ(info.n_tail_tokens, 9u);
  EXPECT_EQ(info.n_tokens_usable, 41u);
  EXPECT_EQ(info.bytes_shared, 2u * 4608u + 960u);  // and the tail
  EXPECT_GT(info.bytes, info.bytes_shared);
  EXPECT_FALSE(info.pinned);
  fs::remove(BlockPath(a, 1));
  list = *Admin().List();
  EXPECT_EQ(list[0].n_tokens_usable, 16u);
}

TEST_F(StoreAdminTest, NamesMayBeShortenedWhileTheyFitOne) {
  const std::string stem = Save(TinyTokens(41));
  const std::string digits = stem.substr(stem.rfind('-') + 1);
  EXPECT_EQ(Admin().Show(stem)->info.stem, stem);
  EXPECT_EQ(Admin().Show(digits.substr(0, 6))->info.stem, stem);
  EXPECT_EQ(Admin().Show("tiny")->info.stem, stem);
  Save(TinyTokens(41, 7));
  EXPECT_EQ(Admin().Show("tiny").error().code, Code::kInvalidArgument);
  EXPECT_EQ(Admin().Show("nobody").error().code, Code::kNotFound);
  EXPECT_EQ(Admin().Show("").error().code, Code::kNotFound);
}

TEST_F(StoreAdminTest, ShowListsEveryBlockAndTheNote) {
  const auto tokens = TinyTokens(41);
  const auto details = *Admin().Show(Save(tokens));
  ASSERT_EQ(details.blocks.size(), 3u);
  EXPECT_EQ(details.tokens, tokens);
  EXPECT_EQ(details.blocks[1].first_token, 16u);
  EXPECT_FALSE(details.blocks[1].is_piece);
  EXPECT_TRUE(details.blocks[2].is_piece);
  EXPECT_EQ(details.blocks[2].n_tokens, 9u);
  EXPECT_NE(details.note.find("\"kv_format\": \"fp16\""), std::string::npos);
}

TEST_F(StoreAdminTest, StatsCountEveryByteOnce) {
  Save(TinyTokens(41));
  Save(TinyTokens(48));
  Save(TinyTokens(20), "other");
  std::ofstream(root_ + "/prompts/stray") << "123";
  const StoreStats stats = *Admin().Stats();
  EXPECT_EQ(stats.total_bytes, TotalBytes());
  const std::uint64_t sum = stats.blocks.bytes + stats.manifests.bytes +
                            stats.sidecars.bytes + stats.memos.bytes +
                            stats.quarantined.bytes + stats.temporaries.bytes +
                            stats.other.bytes;
  EXPECT_EQ(sum, stats.total_bytes);
  EXPECT_EQ(stats.blocks.n_files, 6u);
  ASSERT_EQ(stats.models.size(), 2u);
  EXPECT_EQ(stats.models[1].model_name, "tiny");
  EXPECT_EQ(stats.models[1].n_tokens_unique, 48u);  // the tail goes on
}

TEST_F(StoreAdminTest, VerifyFindsDamageAndSetsItAside) {
  const auto tokens = TinyTokens(41);
  Save(tokens);
  Save(TinyTokens(41, 5));
  EXPECT_TRUE(Admin().Verify(true)->defects.empty());
  const std::string path = BlockPath(tokens, 1);
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary)
      .seekp(-1, std::ios::end)
      .put('x');
  auto report = *Admin().Verify(false);
  ASSERT_EQ(report.defects.size(), 1u);
  EXPECT_EQ(report.defects[0].path, path);
  EXPECT_TRUE(fs::exists(path));
  report = *Admin().Verify(true);
  ASSERT_EQ(report.defects.size(), 1u);
  EXPECT_TRUE(report.defects[0].set_aside);
  EXPECT_FALSE(fs::exists(path));
  EXPECT_EQ(report.incomplete.size(), 1u);
  EXPECT_EQ(report.n_files, 8u);
}

// Who can write to a shared cache makes all checksums right, but not the MAC.
TEST_F(StoreAdminTest, VerifyFindsForgedBlocksOfASharedCache) {
  Vault::Key bytes;
  bytes.fill(9);
  const Vault key(bytes);
  bytes.fill(8);
  const Vault other(bytes);
  const TinyPrompt prompt(identity_, spec_, TinyTokens(32));
  ASSERT_TRUE(prompt.SaveTo(*store_).ok());
  EXPECT_TRUE(Admin().Verify(false, &key)->defects.empty()) << "made here";
  const TinyBlock& block = prompt.blocks[0];
  const auto write = [&](std::vector<std::byte> payload) {
    const auto mac = MakeBlockMac(key, block.id, 0, prompt.payloads[0]);
    const auto header =
        *EncodeBlockHeader(identity_, RootId(identity_), spec_, block.parent,
                           block.id, block.tokens, payload, 0, mac);
    std::ofstream file(BlockPath(prompt.tokens, 0), std::ios::binary);
    for (const ByteSpan part :
         {ByteSpan(header), ByteSpan(payload), ByteSpan(mac)}) {
      file << AsText(part);
    }
  };
  write(prompt.payloads[0]);
  EXPECT_TRUE(Admin().Verify(false, &key)->defects.empty());
  auto negated = prompt.payloads[0];
  for (std::byte& b : negated) b = ~b;
  write(negated);
  EXPECT_TRUE(Admin().Verify(false)->defects.empty()) << "nobody asked";
  EXPECT_EQ(Admin().Verify(false, &other)->n_locked, 1u);
  std::uint64_t done = 0, all = 0;
  const auto report =
      *Admin().Verify(true, &key, [&](std::uint64_t n, std::uint64_t total) {
        done = n;
        all = total;
      });
  ASSERT_EQ(report.defects.size(), 1u);
  EXPECT_NE(report.defects[0].reason.find("MAC"), std::string::npos);
  EXPECT_TRUE(report.defects[0].set_aside);
  EXPECT_EQ(all, report.bytes);
  EXPECT_LT(done, all);
}

TEST_F(StoreAdminTest, APinnedPromptSurvivesTheSmallestBudget) {
  const auto kept = TinyTokens(41), lost = TinyTokens(41, 5);
  const std::string stem = Save(kept);
  Save(lost);
  EXPECT_EQ(*Admin().Pin(stem.substr(0, 10)), stem);
  EXPECT_TRUE(Admin().Show(stem)->info.pinned);
  SpaceLimits limits;
  limits.disk_budget_bytes = 13'000;
  ASSERT_TRUE(Admin().Gc(limits).ok());
  EXPECT_EQ(Found(kept), 41);
  EXPECT_EQ(Found(lost), 0);
  limits.disk_budget_bytes = 4'000;
  EXPECT_EQ(Admin().Gc(limits).error().code, Code::kResourceFull);
  EXPECT_EQ(Found(kept), 41);
  EXPECT_EQ(*Admin().Unpin(stem), stem);
  EXPECT_TRUE(Admin().Gc(limits).ok());
  EXPECT_EQ(Found(kept), 0);
}

TEST_F(StoreAdminTest, GcRemovesLeftoversAndBrokenPrompts) {
  const auto tokens = TinyTokens(41), broken = TinyTokens(41, 5);
  Save(tokens);
  Save(broken);
  fs::remove(BlockPath(broken, 0));
  fs::create_directory(root_ + "/quarantine");
  std::ofstream(root_ + "/quarantine/x.kv") << "bad";
  const std::uint64_t before = TotalBytes();
  const auto report = *Admin().Gc({});
  EXPECT_EQ(report.bytes_left, TotalBytes());
  EXPECT_EQ(report.bytes, before - TotalBytes());
  EXPECT_EQ(Admin().List()->size(), 1u);
  EXPECT_EQ(Found(tokens), 41);
  EXPECT_TRUE(fs::is_empty(root_ + "/quarantine"));
}

TEST_F(StoreAdminTest, WipeLeavesNothingOfAPromptOrOnlyOtherModels) {
  Save(TinyTokens(41));
  Save(TinyTokens(41), "other");
  const TinyPrompt loose(identity_, spec_, TinyTokens(16, 9));
  ASSERT_TRUE(loose.SaveBlock(*store_, 0).ok());
  ASSERT_TRUE(Admin().Wipe({"tiny"}).ok());
  EXPECT_EQ(Found(TinyTokens(41)), 0);
  EXPECT_EQ(Found(loose.tokens), 0);
  ASSERT_EQ(Admin().List()->size(), 1u);
  EXPECT_EQ((*Admin().List())[0].model_name, "other");
  std::ofstream(root_ + "/prompts/readme") << "in our folder";
  ASSERT_TRUE(Admin().Wipe({}).ok());
  int n_files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(root_)) {
    n_files += entry.is_regular_file() ? 1 : 0;
  }
  EXPECT_EQ(n_files, 2);  // VERSION, usage
  Save(TinyTokens(41));
  EXPECT_EQ(Found(TinyTokens(41)), 41);
}

TEST_F(StoreAdminTest, WhyNamesTheFirstTokenThatDiffers) {
  auto stored = TinyTokens(41), asked = TinyTokens(60);
  const std::string stem = Save(stored);
  Save(TinyTokens(41, 9));
  asked[20] = 5;
  const auto why = *Admin().Why(identity_, spec_, asked);
  EXPECT_EQ(why.n_tokens_stored, 20u);
  EXPECT_EQ(why.nearest_stem, stem);
  EXPECT_EQ(why.n_tokens_common, 20u);
  EXPECT_EQ(why.asked_token, 5);
  EXPECT_EQ(why.stored_token, stored[20]);
  EXPECT_TRUE(why.key_differences.empty());
  const auto end = *Admin().Why(identity_, spec_, TinyTokens(60));
  EXPECT_EQ(end.n_tokens_common, 41u);
  EXPECT_EQ(end.stored_token, std::nullopt);
}

TEST_F(StoreAdminTest, WhyNamesTheKeyFieldThatDiffers) {
  const auto tokens = TinyTokens(41);
  Save(tokens);
  const auto differences = [&](const KvIdentity& identity, const KvSpec& spec) {
    return Admin().Why(identity, spec, tokens)->key_differences;
  };
  KvIdentity other = identity_;
  other.model_id.bytes[0] ^= 1;
  EXPECT_EQ(differences(other, spec_), std::vector<std::string>{"model"});
  other = identity_;
  other.name_space = "x";
  EXPECT_EQ(differences(other, spec_), std::vector<std::string>{"name space"});
  KvSpec bf16 = spec_;
  bf16.SetFormat(KvFormat::kBF16);
  EXPECT_EQ(differences(TinyIdentity(bf16), bf16),
            std::vector<std::string>{"kv format"});
  EXPECT_TRUE(differences(identity_, spec_).empty());
}

TEST_F(StoreAdminTest, ExportServesAsBundleAndImportsElsewhere) {
  const auto tokens = TinyTokens(41);
  const std::string stem = Save(tokens);
  const std::string path = dir_.path() + "/bundle";
  ASSERT_TRUE(Admin().Export(stem, path).ok());
  const auto match = LookupBundle(path, identity_, spec_, tokens);
  EXPECT_EQ(match.n_tokens, 41);
  EXPECT_TRUE(IsExact(match, identity_, spec_, tokens));

  root_ = dir_.path() + "/elsewhere";
  store_ = KvStore::Open(root_).value();
  EXPECT_EQ(*Admin().Import(path, {}), stem);
  EXPECT_EQ(*Admin().Import(path, {}), stem);  // again: nothing new
  EXPECT_EQ(Found(tokens), 41);
  EXPECT_TRUE(Admin().Verify(false)->defects.empty());
}

TEST_F(StoreAdminTest, ADamagedBundleIsNotImported) {
  const std::string stem = Save(TinyTokens(41));
  const std::string path = dir_.path() + "/bundle";
  ASSERT_TRUE(Admin().Export(stem, path).ok());
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary)
      .seekp(-1, std::ios::end)
      .put('x');
  root_ = dir_.path() + "/elsewhere";
  store_ = KvStore::Open(root_).value();
  EXPECT_EQ(Admin().Import(path, {}).error().code, Code::kCorrupt);
  EXPECT_FALSE(fs::exists(root_ + "/blocks"));
}

TEST_F(StoreAdminTest, OpeningNeedsAStore) {
  EXPECT_EQ(StoreAdmin::Open(dir_.path() + "/none").error().code,
            Code::kNotFound);
  EXPECT_FALSE(fs::exists(dir_.path() + "/none"));
}

}  // namespace
}  // namespace hearth
