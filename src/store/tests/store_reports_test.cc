// What went wrong with stored KV in the field, one test per kind of report.
// The numbers are those of docs/field-reports.md.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/files/faulty_file_ops.h"
#include "store/admin/store_admin.h"
#include "store/directory/dir_store.h"
#include "store/directory/layout.h"
#include "store/tests/store_testing.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

namespace fs = std::filesystem;

class StoreReports : public testing::Test {
 protected:
  std::unique_ptr<KvStore> OpenStore() const {
    return KvStore::Open(root_).value();
  }
  int Found(const KvIdentity& identity, const KvSpec& spec,
            std::span<const std::int32_t> tokens) const {
    const auto match = LookUp(*OpenStore(), identity, spec, tokens);
    EXPECT_TRUE(IsExact(match, identity, spec, tokens));
    return match.n_tokens;
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
};

TEST_F(StoreReports, R1_WhatWasSavedIsReusedByTheNextProcess) {
  const TinyPrompt prompt(identity_, spec_, TinyTokens(201));
  ASSERT_TRUE(prompt.SaveTo(*OpenStore()).ok());
  EXPECT_EQ(Found(identity_, spec_, prompt.tokens), 201);
}

TEST_F(StoreReports, R11_EverythingIsFoundFromSelfDescribingFilesAlone) {
  const TinyPrompt prompt(identity_, spec_, TinyTokens(41));
  ASSERT_TRUE(prompt.SaveTo(*OpenStore()).ok());
  for (const char* name : {"VERSION", "usage"}) fs::remove(root_ + "/" + name);
  EXPECT_EQ(Found(identity_, spec_, prompt.tokens), 41);
}

TEST_F(StoreReports, R12_AfterACrashTheReportedBytesAreThoseOfTheFiles) {
  const TinyPrompt prompt(identity_, spec_, TinyTokens(41));
  ASSERT_TRUE(prompt.SaveTo(*OpenStore()).ok());
  // A sum that says "nothing here", as a crashed process might have left it.
  std::ofstream(root_ + "/usage", std::ios::binary) << std::string(16, '\0');
  EXPECT_EQ(StoreAdmin::Open(root_)->Stats()->total_bytes, TotalBytes());
  StoreOptions options;
  options.disk_budget_bytes = 10'000;
  options.tidy_in_background = false;
  ASSERT_TRUE(KvStore::Open(root_, options).ok());
  EXPECT_LE(TotalBytes(), 10'000u);
}

TEST_F(StoreReports, R21_AFailedWriteLeavesNoVisibleEntry) {
  FaultyFileOps ops;
  StoreOptions options;
  options.file_ops = &ops;
  options.tidy_in_background = false;
  const auto store = KvStore::Open(root_, options).value();
  const TinyPrompt prompt(identity_, spec_, TinyTokens(16));
  ops.FailAt(0, FaultyFileOps::Mode::kForEver, ENOSPC);
  EXPECT_FALSE(prompt.SaveBlock(*store, 0).ok());
  EXPECT_EQ(Found(identity_, spec_, prompt.tokens), 0);
  EXPECT_TRUE(StoreAdmin::Open(root_)->List()->empty());
}

TEST_F(StoreReports, R22_WhatFailedOnceDoesNotFailAgain) {
  const TinyPrompt prompt(identity_, spec_, TinyTokens(16));
  ASSERT_TRUE(prompt.SaveTo(*OpenStore()).ok());
  const Digest& id = prompt.blocks[0].id;
  std::fstream(root_ + "/blocks/" + BlockFolder(id) + "/" + BlockName(id),
               std::ios::in | std::ios::out | std::ios::binary)
      .seekp(5000)
      .put('x');
  EXPECT_EQ(
      LookUp(*OpenStore(), identity_, spec_, prompt.tokens).warnings.size(),
      1u);
  const auto again = LookUp(*OpenStore(), identity_, spec_, prompt.tokens);
  EXPECT_TRUE(again.warnings.empty());
  EXPECT_EQ(again.miss_reason, "tokens 0..15 are not stored");
}

TEST_F(StoreReports, R26_EveryHeadShapeComesBack) {
  for (const int n_kv_heads : {1, 2, 3, 8}) {
    for (const int head_dim : {4, 10, 64}) {
      const KvSpec spec(UniformKv{.n_layers = 2,
                                  .n_heads = n_kv_heads,
                                  .head_dim = head_dim,
                                  .key_format = KvFormat::kF16,
                                  .value_format = KvFormat::kF16,
                                  .block_tokens = 16});
      const KvIdentity identity = TinyIdentity(spec);
      const TinyPrompt prompt(identity, spec, TinyTokens(37));
      ASSERT_TRUE(prompt.SaveTo(*OpenStore()).ok());
      EXPECT_EQ(Found(identity, spec, prompt.tokens), 37)
          << n_kv_heads << " x " << head_dim;
    }
  }
}

TEST_F(StoreReports, LayersOfTheirOwnShapesAndKeysAloneComeBack) {
  KvSpec two_shapes, keys_alone;
  two_shapes.layers = {{.n_heads = 4, .key_dim = 8, .value_dim = 8},
                       {.n_heads = 1, .key_dim = 16, .value_dim = 16}};
  keys_alone.layers.assign(2, {.n_heads = 1, .key_dim = 36, .value_dim = 0});
  for (KvSpec* spec : {&two_shapes, &keys_alone}) {
    spec->SetFormat(KvFormat::kF16);
    spec->block_tokens = 16;
    const KvIdentity identity = TinyIdentity(*spec);
    const TinyPrompt prompt(identity, *spec, TinyTokens(37));
    ASSERT_TRUE(prompt.SaveTo(*OpenStore()).ok());
    EXPECT_EQ(Found(identity, *spec, prompt.tokens), 37);
  }
}

TEST_F(StoreReports, R32_R34_NoFormatEverHitsAnotherAndAllStayUsable) {
  std::vector<KvSpec> specs;
  for (const KvFormat format :
       {KvFormat::kF32, KvFormat::kF16, KvFormat::kBF16}) {
    for (const int block_tokens : {16, 32}) {
      KvSpec spec = TinySpec(block_tokens);
      spec.SetFormat(format);
      specs.push_back(spec);
    }
  }
  const auto tokens = TinyTokens(45);
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const KvIdentity identity = TinyIdentity(specs[i]);
    EXPECT_EQ(Found(identity, specs[i], tokens), 0);
    ASSERT_TRUE(
        TinyPrompt(identity, specs[i], tokens).SaveTo(*OpenStore()).ok());
  }
  for (const KvSpec& spec : specs) {
    EXPECT_EQ(Found(TinyIdentity(spec), spec, tokens), 45);
  }
}

TEST_F(StoreReports, R39_IdsAreTheSameInEveryProcessMachineAndBuild) {
  // Computed once with another program from the formula in block.md.
  KvIdentity identity;
  identity.model_id.bytes.fill(1);
  identity.format_id.bytes.fill(2);
  identity.name_space = "n";
  const std::vector<std::int32_t> tokens = {1, 2, 3, 4, -5};
  const BlockChain chain(identity, tokens, 4);
  EXPECT_EQ(ToHex(RootId(identity)),
            "188171a2bc0a5584a9a8477e520ec5f518bb2b5260920a410241b185ae01ff13");
  EXPECT_EQ(ToHex(chain[0].id),
            "00d5f2bfca90a98a760686a9e727cbc95b02376accefec87dee178e4fc61b520");
  EXPECT_EQ(ToHex(chain[1].id),
            "be35c2905a33db07d7a73e872d50da73a0627dcb5a64ff58457bfd9032310edb");
}

// Fields are delimited: text cannot move from one to the next.
TEST_F(StoreReports, R46_NoTwoIdentitiesShareAnIdByConcatenation) {
  KvIdentity a, b;
  a.name_space = std::string(8, '\0');
  EXPECT_NE(RootId(a), RootId(b));
  const std::vector<std::int32_t> tokens = {0, 0};
  EXPECT_NE(ChildId(a.model_id, tokens),
            ChildId(a.model_id, std::span(tokens).first(1)));
}

TEST_F(StoreReports, R49_NothingOfAPromptIsInNamesOrNotesAndWipeLeavesNone) {
  const TinyPrompt prompt(identity_, spec_, TinyTokens(41));
  ASSERT_TRUE(prompt.SaveTo(*OpenStore()).ok());
  EXPECT_EQ(StoreAdmin::Open(root_)->List()->size(), 1u);
  ASSERT_TRUE(StoreAdmin::Open(root_)->Wipe({}).ok());
  EXPECT_EQ(Found(identity_, spec_, prompt.tokens), 0);
  EXPECT_LE(TotalBytes(), 31u);  // VERSION and usage
}

}  // namespace
}  // namespace hearth
