// States beside blocks: what is found of them, what damage does, and that every
// job of the store knows them.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <random>

#include "cache/states/state_layout.h"
#include "store/admin/store_admin.h"
#include "store/directory/layout.h"
#include "store/format/state_image.h"
#include "store/tests/store_testing.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

namespace fs = std::filesystem;

KvSpec SpecWithStates() {
  KvSpec spec = TinySpec();
  spec.states = {{StateRule::kLastInputs, {2, 5}},
                 {StateRule::kDeltaNet, {1, 4, 4}}};
  return spec;
}

class StoreStates : public testing::Test {
 protected:
  std::unique_ptr<KvStore> Open(std::uint64_t budget = 0) const {
    StoreOptions options;
    options.vault = vault_;
    options.disk_budget_bytes = budget;
    options.tidy_in_background = false;
    return KvStore::Open(root_, options).value();
  }
  StoreAdmin Admin() const {
    return StoreAdmin::Open(root_, nullptr, vault_).value();
  }
  BlockChain Chain(std::span<const std::int32_t> tokens) const {
    return BlockChain(identity_, tokens, spec_.block_tokens);
  }
  // What the model would have left behind this prefix.
  std::vector<std::byte> StatesBehind(std::span<const std::int32_t> tokens,
                                      std::size_t n) const {
    const BlockChain chain = Chain(tokens);
    const Digest id = StateQueryOf(chain, n).prefix.block_id;
    const StateLayout layout(spec_.states);
    std::vector<std::byte> bytes(layout.bytes());
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] = static_cast<std::byte>(id.bytes[i % 32] + i);
    }
    return bytes;
  }
  void SaveState(KvStore& store, std::span<const std::int32_t> tokens,
                 std::size_t n) const {
    const auto saved =
        store.SaveState(Chain(tokens), spec_, n, StatesBehind(tokens, n));
    ASSERT_TRUE(saved.ok()) << saved.error().message;
  }
  // Blocks, states at these positions, the manifest.
  void Save(KvStore& store, const std::vector<std::int32_t>& tokens,
            const std::vector<std::size_t>& positions) const {
    const TinyPrompt prompt(identity_, spec_, tokens);
    const auto blocks = prompt.SaveBlocks(store);
    ASSERT_TRUE(blocks.ok()) << blocks.error().message;
    for (const std::size_t n : positions) SaveState(store, tokens, n);
    const auto named = store.SaveManifest(prompt.chain, spec_, "");
    ASSERT_TRUE(named.ok()) << named.error().message;
  }
  // How much is found; all of it must be right.
  int Found(KvStore& store, std::span<const std::int32_t> tokens) const {
    const StoreMatch match = LookUp(store, identity_, spec_, tokens);
    EXPECT_TRUE(IsExact(match, identity_, spec_, tokens));
    EXPECT_EQ(match.state.has_value(), match.n_tokens > 0);
    if (!match.state.has_value()) return 0;
    EXPECT_EQ(match.state->n_tokens, match.n_tokens);
    const auto right =
        StatesBehind(tokens, static_cast<std::size_t>(match.n_tokens));
    EXPECT_TRUE(std::equal(right.begin(), right.end(),
                           match.state->payload.begin(),
                           match.state->payload.end()));
    return match.n_tokens;
  }
  std::vector<fs::path> StateFiles() const {
    std::vector<fs::path> files;
    if (!fs::exists(root_ + "/states")) return files;
    for (const auto& entry :
         fs::recursive_directory_iterator(root_ + "/states")) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
    return files;
  }

  TempDir dir_;
  std::string root_ = dir_.path() + "/s";
  KvSpec spec_ = SpecWithStates();
  KvIdentity identity_ = TinyIdentity(spec_);
  std::shared_ptr<const Vault> vault_;
};

TEST_F(StoreStates, AMatchEndsWhereTheNewestStatesAre) {
  const auto store = Open();
  const auto tokens = TinyTokens(60);
  Save(*store, tokens, {7, 32, 45});
  EXPECT_EQ(Found(*store, tokens), 45);
  EXPECT_EQ(Found(*store, TinyTokens(45)), 32)
      << "the last token is always computed";
  EXPECT_EQ(Found(*store, TinyTokens(46)), 45);
  EXPECT_EQ(Found(*store, TinyTokens(9)), 7);
  EXPECT_EQ(Found(*store, TinyTokens(7)), 0);
  EXPECT_EQ(LookUp(*store, identity_, spec_, tokens).miss_reason,
            "the states nearest below token 60 are those behind token 45");
  EXPECT_EQ(LookUp(*store, identity_, spec_, TinyTokens(46)).miss_reason, "");
}

TEST_F(StoreStates, WithoutThemBlocksAreOfNoUse) {
  const auto store = Open();
  const auto tokens = TinyTokens(40);
  Save(*store, tokens, {});
  const StoreMatch match = LookUp(*store, identity_, spec_, tokens);
  EXPECT_EQ(match.n_tokens, 0);
  EXPECT_EQ(match.miss_reason,
            "the blocks of 40 tokens are stored, and no states behind them");
  EXPECT_FALSE(Admin().List()->front().whole);
}

TEST_F(StoreStates, TheLongestThatBlocksAndStatesHaveIsFound) {
  std::mt19937 random(7);
  const auto store = Open();
  std::vector<std::vector<std::int32_t>> prompts;
  std::map<Digest, std::size_t> states;  // saved ones
  for (int i = 0; i < 12; ++i) {
    auto tokens = TinyTokens(20 + static_cast<int>(random() % 60));
    // Parts from the others somewhere.
    if (i > 0) tokens[random() % tokens.size()] += 1;
    std::vector<std::size_t> positions;
    for (int k = 0; k < 3; ++k)
      positions.push_back(1 + random() % tokens.size());
    Save(*store, tokens, positions);
    const BlockChain chain = Chain(tokens);
    for (const std::size_t n : positions) {
      states[StateQueryOf(chain, n).prefix.block_id] = n;
    }
    prompts.push_back(tokens);
  }
  KvSpec stateless = spec_;
  stateless.states.clear();
  for (auto tokens : prompts) {
    for (int k = 0; k < 3; ++k) {
      tokens.resize(tokens.size() + random() % 9, 5);
      const int n_blocks =
          LookUp(*store, identity_, stateless, tokens).n_tokens;
      const BlockChain chain = Chain(tokens);
      int want = 0;
      for (int n = 1; n <= n_blocks && n < static_cast<int>(tokens.size());
           ++n) {
        const auto id =
            StateQueryOf(chain, static_cast<std::size_t>(n)).prefix.block_id;
        if (states.count(id) > 0) want = n;
      }
      EXPECT_EQ(Found(*store, tokens), want);
    }
  }
}

TEST_F(StoreStates, EveryByteThatIsWrongIsAShorterMatch) {
  const auto tokens = TinyTokens(40);
  Save(*Open(), tokens, {20, 39});
  fs::path newest;
  for (const auto& file : StateFiles()) {
    if (file.string().ends_with("-39.state")) newest = file;
  }
  ASSERT_FALSE(newest.empty());
  std::string right;
  {
    std::ifstream in(newest, std::ios::binary);
    right.assign(std::istreambuf_iterator<char>(in), {});
  }
  const auto write = [&](const std::string& bytes) {
    std::ofstream(newest, std::ios::binary | std::ios::trunc) << bytes;
  };
  const auto store = Open();
  // The zeros of the header are under one checksum: some of them will do.
  for (std::size_t at = 0; at < right.size();
       at += at < 420 || at > 4090 ? 1 : 97) {
    std::string wrong = right;
    wrong[at] = static_cast<char>(wrong[at] ^ 0x10);
    write(wrong);
    const StoreMatch match = LookUp(*store, identity_, spec_, tokens);
    ASSERT_EQ(match.n_tokens, 20) << "byte " << at;
    ASSERT_EQ(match.warnings.size(), 1u) << "byte " << at;
    // What is sound but of a version that is not known stays.
    ASSERT_EQ(fs::exists(newest), false) << "byte " << at;
    fs::remove_all(root_ + "/quarantine");
  }
  for (const std::size_t n : {0, 1, 100, 4096, 4200}) {
    write(right.substr(0, n));
    EXPECT_EQ(Found(*Open(), tokens), 20) << n << " bytes";
  }
  write(right + "x");
  EXPECT_EQ(Found(*Open(), tokens), 20);
  write(right);
  EXPECT_EQ(Found(*Open(), tokens), 39);
}

TEST_F(StoreStates, AFileUnderAnothersNameIsSetAside) {
  const auto tokens = TinyTokens(40);
  Save(*Open(), tokens, {20, 39});
  fs::path older, newer;
  for (const auto& file : StateFiles()) {
    (file.string().ends_with("-20.state") ? older : newer) = file;
  }
  fs::copy_file(older, newer, fs::copy_options::overwrite_existing);
  const auto report = Admin().Verify(/*set_aside=*/false);
  ASSERT_EQ(report->defects.size(), 1u);
  EXPECT_NE(report->defects[0].reason.find("than its name says"),
            std::string::npos);
  EXPECT_EQ(Found(*Open(), tokens), 20);
  EXPECT_FALSE(fs::exists(newer));
}

TEST_F(StoreStates, AnotherSpecOrModelHasOthers) {
  const auto tokens = TinyTokens(40);
  Save(*Open(), tokens, {30});
  KvSpec other = spec_;
  other.states[0].dims[1] = 6;
  EXPECT_NE(FormatId(other), FormatId(spec_));
  identity_ = TinyIdentity(spec_, "other");
  EXPECT_EQ(Found(*Open(), tokens), 0);
}

TEST_F(StoreStates, EncryptedTheyAreFoundWithTheKeyAlone) {
  Vault::Key key{};
  key[3] = 9;
  vault_ = std::make_shared<const Vault>(key);
  const auto tokens = TinyTokens(40);
  Save(*Open(), tokens, {30});
  EXPECT_EQ(Found(*Open(), tokens), 30);
  EXPECT_TRUE(Admin().Verify(false)->defects.empty());
  vault_ = nullptr;
  EXPECT_EQ(Found(*Open(), tokens), 0);
}

TEST_F(StoreStates, TheStoreSaysWhatItHas) {
  Save(*Open(), TinyTokens(40), {16, 39});
  Save(*Open(), TinyTokens(60), {16, 50});
  const auto list = Admin().List();
  ASSERT_EQ(list->size(), 2u);
  for (const PromptInfo& info : *list) {
    EXPECT_TRUE(info.carries_states && info.whole);
    EXPECT_EQ(info.n_states, info.n_tokens == 40 ? 2u : 3u);
    EXPECT_EQ(info.n_tokens_usable, info.n_tokens == 40 ? 39u : 50u);
  }
  EXPECT_EQ(Admin().Stats()->states.n_files, 3u);
  const PromptTree tree = *Admin().Tree();
  std::uint64_t n_states = 0;
  for (const PromptTreeNode& node : tree.nodes) n_states += node.n_states;
  EXPECT_EQ(n_states, 3u);
  const auto why = Admin().Why(identity_, spec_, TinyTokens(60));
  EXPECT_EQ(why->n_tokens_stored, 50u);
}

TEST_F(StoreStates, EvictingOnePromptLeavesWhatOthersName) {
  Save(*Open(), TinyTokens(40), {16, 39});
  Save(*Open(), TinyTokens(60), {50});
  std::string stem;
  const auto list = Admin().List();
  for (const PromptInfo& info : *list) {
    if (info.n_tokens == 60) stem = info.stem;
  }
  ASSERT_TRUE(Admin().Evict(stem).ok());
  EXPECT_EQ(StateFiles().size(), 2u);
  EXPECT_EQ(Found(*Open(), TinyTokens(60)), 39);
  ASSERT_TRUE(Admin().Wipe({.model_name = "tiny"}).ok());
  EXPECT_TRUE(StateFiles().empty());
}

TEST_F(StoreStates, WipingLeavesNone) {
  Save(*Open(), TinyTokens(40), {16, 39});
  ASSERT_TRUE(Admin().Wipe({}).ok());
  EXPECT_TRUE(StateFiles().empty());
}

TEST_F(StoreStates, GcRemovesAPromptThatHasNoneLeft) {
  Save(*Open(), TinyTokens(40), {16});
  for (const auto& file : StateFiles()) fs::remove(file);
  ASSERT_TRUE(Admin().Gc({}).ok());
  EXPECT_TRUE(Admin().List()->empty());
}

TEST_F(StoreStates, AnExportCarriesThem) {
  Save(*Open(), TinyTokens(40), {16, 39});
  const std::string stem = Admin().List()->front().stem;
  const std::string bundle = dir_.path() + "/one.kvcache";
  ASSERT_TRUE(Admin().Export(stem, bundle).ok());
  const auto in_file = LookupBundle(bundle, identity_, spec_, TinyTokens(40));
  EXPECT_EQ(in_file.n_tokens, 39);
  ASSERT_TRUE(Admin().Wipe({}).ok());
  const auto imported = Admin().Import(bundle, {});
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  EXPECT_EQ(Found(*Open(), TinyTokens(40)), 39);
  EXPECT_EQ(Found(*Open(), TinyTokens(20)), 16);
}

TEST_F(StoreStates, OneFileKeepsThemWhileItsPromptGrows) {
  const std::string path = dir_.path() + "/grows.kvcache";
  {
    const auto store = KvStore::OpenFile(path).value();
    Save(*store, TinyTokens(40), {16, 39});
    EXPECT_EQ(Found(*store, TinyTokens(40)), 39);
  }
  const auto store = KvStore::OpenFile(path).value();
  Save(*store, TinyTokens(70), {60});
  EXPECT_EQ(Found(*store, TinyTokens(70)), 60);
  EXPECT_EQ(Found(*store, TinyTokens(60)), 39);
  EXPECT_EQ(Found(*store, TinyTokens(30)), 16);
}

TEST_F(StoreStates, WhatNobodyCanBeginFromGoesFirst) {
  // Two chains: one with states in its first block alone, one with some at its
  // end.
  auto other = TinyTokens(96);
  other[0] = 3;
  Save(*Open(), TinyTokens(96), {16});
  Save(*Open(), other, {95});
  std::uint64_t bytes = 0;
  for (const auto& entry : fs::recursive_directory_iterator(root_)) {
    if (entry.is_regular_file()) bytes += entry.file_size();
  }
  // Room for all but four blocks.
  SpaceLimits limits;
  limits.disk_budget_bytes = bytes - 3 * 4096 - 1000;
  ASSERT_TRUE(Admin().Gc(limits).ok());
  EXPECT_EQ(Found(*Open(), other), 95);
  EXPECT_EQ(Found(*Open(), TinyTokens(96)), 16);
}

TEST_F(StoreStates, WhatIsPinnedKeepsThem) {
  Save(*Open(), TinyTokens(40), {16, 39});
  ASSERT_TRUE(Admin().Pin(Admin().List()->front().stem).ok());
  SpaceLimits limits;
  limits.disk_budget_bytes = 1;
  // What is pinned is more than there may be.
  (void)Admin().Gc(limits);
  EXPECT_EQ(Found(*Open(), TinyTokens(40)), 39);
}

TEST_F(StoreStates, TheBudgetCountsThem) {
  const auto tokens = TinyTokens(40);
  const TinyPrompt prompt(identity_, spec_, tokens);
  const auto store = Open(/*budget=*/60'000);
  ASSERT_TRUE(prompt.SaveTo(*store).ok());
  for (std::size_t n = 1; n <= 39; ++n) {
    (void)store->SaveState(prompt.chain, spec_, n, StatesBehind(tokens, n));
    std::uint64_t bytes = 0;
    for (const auto& entry : fs::recursive_directory_iterator(root_)) {
      if (entry.is_regular_file()) bytes += entry.file_size();
    }
    ASSERT_LE(bytes, 60'000u);
  }
}

}  // namespace
}  // namespace hearth
