#include "store/budget/eviction.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/files/faulty_file_ops.h"
#include "store/directory/dir_store.h"
#include "store/directory/layout.h"
#include "store/tests/store_testing.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

namespace fs = std::filesystem;

class EvictionTest : public testing::Test {
 protected:
  std::unique_ptr<KvStore> OpenStore(std::uint64_t budget = 0) {
    StoreOptions options;
    options.disk_budget_bytes = budget;
    options.tidy_in_background = false;
    return KvStore::Open(root_, options).value();
  }
  std::vector<std::int32_t> Tokens(int n, int first) {
    return TinyTokens(n, first);
  }
  void Save(const std::vector<std::int32_t>& tokens, std::uint64_t budget = 0) {
    const TinyPrompt prompt(identity_, spec_, tokens);
    const auto saved = prompt.SaveTo(*OpenStore(budget));
    ASSERT_TRUE(saved.ok()) << saved.error().message;
  }
  int Found(const std::vector<std::int32_t>& tokens) {
    const auto match = LookUp(*OpenStore(), identity_, spec_, tokens);
    EXPECT_TRUE(IsExact(match, identity_, spec_, tokens));
    return match.n_tokens;
  }
  // Moves every file's last use into the past.
  void Age(std::chrono::hours hours) {
    for (const auto& entry : fs::recursive_directory_iterator(root_)) {
      if (entry.is_regular_file()) {
        fs::last_write_time(entry, fs::last_write_time(entry) - hours);
      }
    }
  }
  std::uint64_t TotalBytes() {
    std::uint64_t bytes = 0;
    for (const auto& entry : fs::recursive_directory_iterator(root_)) {
      if (entry.is_regular_file()) bytes += entry.file_size();
    }
    return bytes;
  }
  // Names in the order in which they would go.
  std::vector<std::string> Order(const Protection& protection = {}) {
    const auto root = Directory::Open(FileOps::System(), root_);
    const auto catalog = ScanStore(*root);
    std::vector<std::string> names;
    for (const std::size_t i :
         EvictionOrder(*root, *catalog, protection, {}, NowNs())) {
      names.push_back(catalog->files[i].name);
    }
    return names;
  }
  std::string BlockNameOf(const std::vector<std::int32_t>& tokens,
                          std::size_t index) {
    return BlockName(BlockChain(identity_, tokens, 16)[index].id);
  }
  std::string StemOfPrompt(const std::vector<std::int32_t>& tokens) {
    return PromptStem("tiny", BlockChain(identity_, tokens, 16).end_id());
  }
  static std::size_t PlaceOf(const std::vector<std::string>& order,
                             const std::string& name) {
    return static_cast<std::size_t>(
        std::find(order.begin(), order.end(), name) - order.begin());
  }

  TempDir dir_;
  std::string root_ = dir_.path() + "/s";
  KvSpec spec_ = TinySpec();
  KvIdentity identity_ = TinyIdentity(spec_);
};

TEST_F(EvictionTest, AChainLosesItsEndFirst) {
  const auto tokens = Tokens(64, 1);
  Save(tokens);
  const auto order = Order();
  for (std::size_t i = 0; i + 1 < 4; ++i) {
    EXPECT_GT(PlaceOf(order, BlockNameOf(tokens, i)),
              PlaceOf(order, BlockNameOf(tokens, i + 1)));
  }
  EXPECT_LT(PlaceOf(order, StemOfPrompt(tokens) + ".kvcache"),
            PlaceOf(order, BlockNameOf(tokens, 3)));
}

TEST_F(EvictionTest, AChainWithoutManifestLosesItsEndFirst) {
  const auto tokens = Tokens(64, 1);
  const TinyPrompt prompt(identity_, spec_, tokens);
  ASSERT_TRUE(prompt.SaveBlocks(*OpenStore()).ok());
  const auto order = Order();
  ASSERT_EQ(order.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(order[i], BlockNameOf(tokens, 3 - i));
  }
}

TEST_F(EvictionTest, LeastRecentlyUsedGoesFirst) {
  Save(Tokens(32, 1));
  Save(Tokens(32, 2));
  Age(std::chrono::hours(1));
  EXPECT_EQ(Found(Tokens(32, 1)), 32);  // a use
  const auto order = Order();
  EXPECT_GT(PlaceOf(order, BlockNameOf(Tokens(32, 1), 1)),
            PlaceOf(order, BlockNameOf(Tokens(32, 2), 0)));
}

TEST_F(EvictionTest, ASharedPrefixOutlivesANewerLonePrompt) {
  auto a = Tokens(48, 1), b = Tokens(48, 1), c = Tokens(48, 1);
  b[40] = 5;
  c[40] = 6;
  Save(a);
  Save(b);
  Save(c);
  Age(std::chrono::hours(12));  // half a half-life
  Save(Tokens(48, 2));
  const auto order = Order();
  EXPECT_GT(PlaceOf(order, BlockNameOf(a, 0)),
            PlaceOf(order, BlockNameOf(Tokens(48, 2), 0)));
  EXPECT_LT(PlaceOf(order, BlockNameOf(a, 2)),
            PlaceOf(order, BlockNameOf(Tokens(48, 2), 0)));
}

TEST_F(EvictionTest, ASharedPrefixThatNobodyUsesDecays) {
  auto a = Tokens(48, 1), b = Tokens(48, 1);
  b[40] = 5;
  Save(a);
  Save(b);
  Age(std::chrono::hours(24 * 7));
  Save(Tokens(48, 2));
  const auto order = Order();
  EXPECT_LT(PlaceOf(order, BlockNameOf(a, 0)),
            PlaceOf(order, BlockNameOf(Tokens(48, 2), 0)));
}

TEST_F(EvictionTest, OneShotTailsGoBeforeAnyBlock) {
  const auto old = Tokens(32, 1), fresh = Tokens(35, 2);
  Save(old);
  Age(std::chrono::hours(48));
  Save(fresh);
  EXPECT_EQ(PlaceOf(Order(), StemOfPrompt(fresh) + ".kvcache"), 0u);
}

TEST_F(EvictionTest, AUsedTailIsWorthAsMuchAsItsUse) {
  const auto used = Tokens(35, 1), never = Tokens(35, 2);
  Save(used);
  Save(never);
  const std::string manifest =
      root_ + "/prompts/" + StemOfPrompt(used) + ".kvcache";
  fs::last_write_time(
      manifest, fs::file_time_type::clock::now() + std::chrono::seconds(10));
  const auto order = Order();
  EXPECT_EQ(order[0], StemOfPrompt(never) + ".kvcache");
  EXPECT_NE(order[1], StemOfPrompt(used) + ".kvcache");
}

TEST_F(EvictionTest, PinnedAndProtectedAreNeverInTheOrder) {
  const auto pinned = Tokens(35, 1), wanted = Tokens(35, 2);
  Save(pinned);
  Save(wanted);
  fs::create_directory(root_ + "/pins");
  ASSERT_TRUE(
      WriteFileAtomically(root_ + "/pins/" + StemOfPrompt(pinned), ByteSpan{})
          .ok());
  Protection protection;
  const BlockChain chain(identity_, wanted, 16);
  for (std::size_t i = 0; i < chain.size(); ++i) {
    protection.blocks.insert(chain[i].id);
  }
  protection.stems.insert(StemOfPrompt(wanted));
  EXPECT_TRUE(Order(protection).empty());
}

TEST_F(EvictionTest, LeftoversGoFirst) {
  Save(Tokens(35, 1));
  fs::create_directory(root_ + "/quarantine");
  std::ofstream(root_ + "/quarantine/x.kv") << "bad";
  std::ofstream(root_ + "/prompts/gone-0.meta.json") << "{}";
  std::ofstream(root_ + "/prompts/gone-0.kvcache.tmp-00000000-1-1") << "x";
  std::ofstream(root_ + "/prompts/readme.txt") << "not ours";
  auto order = Order();
  EXPECT_EQ(std::set<std::string>(order.begin(), order.begin() + 2),
            (std::set<std::string>{"gone-0.meta.json", "x.kv"}));
  for (const std::string& name : order) {
    EXPECT_NE(name, "readme.txt");
    EXPECT_NE(name, "VERSION");
    EXPECT_EQ(name.find(".tmp-"), std::string::npos);  // may still be written
  }
}

// --- The budget --------------------------------------------------------------

TEST_F(EvictionTest, BudgetHoldsAfterEverySaveAndTheNewestIsFound) {
  const std::uint64_t budget = 60'000;
  for (int i = 0; i < 40; ++i) {
    Save(Tokens(20 + i, 1000 * i), budget);
    EXPECT_LE(TotalBytes(), budget) << i;
    EXPECT_EQ(Found(Tokens(20 + i, 1000 * i)), 20 + i);
  }
}

TEST_F(EvictionTest, BudgetIsEnforcedAtOpenWhateverTheSumSays) {
  for (int i = 0; i < 10; ++i) Save(Tokens(35, 1000 * i));
  fs::remove(root_ + "/usage");
  EXPECT_GT(TotalBytes(), 60'000u);
  OpenStore(60'000);
  EXPECT_LE(TotalBytes(), 60'000u);
}

TEST_F(EvictionTest, APromptLargerThanTheBudgetIsRefusedWithoutAnyHarm) {
  Save(Tokens(35, 1), 60'000);
  const TinyPrompt large(identity_, spec_, Tokens(16 * 20, 5));
  const auto store = OpenStore(60'000);
  const auto saved = large.SaveBlocks(*store);
  ASSERT_FALSE(saved.ok());
  EXPECT_EQ(saved.error().code, Code::kResourceFull);
  EXPECT_EQ(Found(Tokens(35, 1)), 35);
}

TEST_F(EvictionTest, AGrowingChainNeverEvictsItsOwnBeginning) {
  const TinyPrompt prompt(identity_, spec_, Tokens(16 * 12, 1));
  const std::uint64_t budget = 8 * 4608 + 100;
  const auto store = OpenStore(budget);
  std::size_t n_saved = 0;
  while (n_saved < prompt.blocks.size() &&
         prompt.SaveBlock(*store, n_saved).ok()) {
    ++n_saved;
  }
  EXPECT_EQ(n_saved, 8u);
  EXPECT_EQ(Found(prompt.tokens), 8 * 16);
}

TEST_F(EvictionTest, TheDisksReserveIsKept) {
  FaultyFileOps ops;
  StoreOptions options;
  options.file_ops = &ops;
  options.free_space_reserve_bytes = 1'000'000;
  options.tidy_in_background = false;
  const auto store = KvStore::Open(root_, options).value();
  const TinyPrompt prompt(identity_, spec_, Tokens(35, 1));
  ops.set_free_bytes(2'000'000);
  EXPECT_TRUE(prompt.SaveTo(*store).ok());
  ops.set_free_bytes(900'000);
  const TinyPrompt other(identity_, spec_, Tokens(35, 2));
  const auto saved = other.SaveTo(*store);
  ASSERT_FALSE(saved.ok());
  EXPECT_EQ(saved.error().code, Code::kResourceFull);
  EXPECT_EQ(Found(prompt.tokens), 35);
}

}  // namespace
}  // namespace hearth
