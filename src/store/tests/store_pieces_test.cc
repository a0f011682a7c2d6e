// Blocks that conversations write piece by piece: no token is written twice,
// and what is read is what one write would have given.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>

#include "base/files/faulty_file_ops.h"
#include "store/admin/store_admin.h"
#include "store/directory/dir_store.h"
#include "store/directory/layout.h"
#include "store/format/block_pieces.h"
#include "store/tests/store_testing.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

namespace fs = std::filesystem;

// Counts every byte that is handed to the system.
class CountingFileOps : public FileOps {
 public:
  ssize_t Write(int fd, const void* from, std::size_t n) override {
    const ssize_t written = FileOps::Write(fd, from, n);
    if (written > 0) n_bytes += static_cast<std::uint64_t>(written);
    return written;
  }
  int Fsync(int) override { return 0; }  // tests of amounts need no real flush
  void StartWriteback(int) override {}

  std::atomic<std::uint64_t> n_bytes{0};
};

class StorePieces : public testing::Test {
 protected:
  std::unique_ptr<KvStore> OpenStore() {
    options_.file_ops = &ops_;
    options_.tidy_in_background = false;
    return KvStore::Open(root_, options_).value();
  }
  // Each save by a store of its own, as after a restart.
  void Save(int n_tokens) {
    const TinyPrompt prompt(identity_, spec_, TinyTokens(n_tokens));
    const auto saved = prompt.SaveTo(*OpenStore());
    ASSERT_TRUE(saved.ok()) << saved.error().message;
  }
  void ExpectFound(int n_asked, int n_found) {
    const auto tokens = TinyTokens(n_asked);
    const StoreMatch match = LookUp(*OpenStore(), identity_, spec_, tokens);
    EXPECT_EQ(match.n_tokens, n_found) << n_asked << ": " << match.miss_reason;
    EXPECT_TRUE(IsExact(match, identity_, spec_, tokens)) << n_asked;
  }
  std::string PathOf(int n_tokens) const {
    const Digest id = BlockChain(identity_, TinyTokens(n_tokens), 16).end_id();
    return root_ + "/blocks/" + BlockFolder(id) + "/" + BlockName(id);
  }
  int CountBlockFiles() const {
    int n = 0;
    for (const auto& entry :
         fs::recursive_directory_iterator(root_ + "/blocks")) {
      n += entry.is_regular_file() ? 1 : 0;
    }
    return n;
  }

  TempDir dir_;
  std::string root_ = dir_.path() + "/s";
  KvSpec spec_ = TinySpec();
  KvIdentity identity_ = TinyIdentity(spec_);
  StoreOptions options_;
  CountingFileOps ops_;
};

TEST_F(StorePieces, APromptThatGrowsIsFoundAtEveryLengthItHad) {
  const std::vector<int> lengths = {5, 6, 12, 16, 23, 40, 41, 47, 48, 61};
  for (const int n : lengths) {
    Save(n);
    ExpectFound(n, n);
  }
  // And at every other, but for one token, which is computed anyway.
  for (int n = 1; n <= 80; ++n) {
    const auto saved = [&](int end) {
      return end % 16 == 0 ||
             std::find(lengths.begin(), lengths.end(), end) != lengths.end();
    };
    ExpectFound(n, n > 61 ? 61 : saved(n) || !saved(n - 1) ? n : n - 1);
  }
}

TEST_F(StorePieces, OnlyWhatIsNewIsWritten) {
  Save(10);
  Save(13);
  // Three tokens of 32 bytes, each of four sections padded to 64.
  EXPECT_EQ(fs::file_size(PathOf(13)), 448u + 4 * 64);
  Save(16);
  EXPECT_LT(fs::file_size(PathOf(16)), 4096u);  // whole: 4096 + 512
  ExpectFound(16, 16);
  Save(16);
  EXPECT_EQ(CountBlockFiles(), 3);
}

TEST_F(StorePieces, ABlockHasAFewPiecesAtMost) {
  for (int n = 1; n <= 16; ++n) Save(n);
  ExpectFound(16, 16);
  const auto stem =
      PromptStem("tiny", BlockChain(identity_, TinyTokens(16), 16).end_id());
  const auto last = StoreAdmin::Open(root_)->Show(stem);
  ASSERT_TRUE(last.ok());
  EXPECT_LE(last->blocks.size(), static_cast<std::size_t>(kBlockPiecesMax));
  EXPECT_EQ(last->tokens, TinyTokens(16));
  EXPECT_EQ(last->info.n_tokens_usable, 16u);
  EXPECT_EQ(last->info.n_blocks_present, 1u);
}

TEST_F(StorePieces, WithoutItsBeginningAPieceIsWrittenAgainWhole) {
  Save(10);
  Save(16);
  fs::remove(PathOf(10));
  ExpectFound(16, 0);
  EXPECT_EQ(StoreAdmin::Open(root_)->Verify(true)->defects.size(), 0u);
  Save(16);
  ExpectFound(16, 16);
  EXPECT_EQ(fs::file_size(PathOf(16)), 4096u + 512u);
}

TEST_F(StorePieces, ABlockStoredWholeIsNotCutWhenAnotherPromptEndsInIt) {
  Save(32);
  Save(20);
  Save(32);
  EXPECT_EQ(fs::file_size(PathOf(32)), 4096u + 512u);
  ExpectFound(32, 32);
  ExpectFound(20, 20);
}

TEST_F(StorePieces, TheTailOfAQuantisedBlockGrowsAndTheBlockIsWhole) {
  spec_.SetFormat(KvFormat::kInt8);
  identity_ = TinyIdentity(spec_);
  Save(5);
  Save(11);
  ExpectFound(11, 11);
  const auto tokens = TinyTokens(16);
  const std::vector<std::byte> codes(KvLayout(spec_, 16).block_bytes(),
                                     std::byte{7});
  const ByteSpan payload = codes;
  ASSERT_TRUE(OpenStore()
                  ->SaveBlocks(BlockChain(identity_, tokens, 16), spec_, 0,
                               std::span(&payload, 1))
                  .ok());
  const auto match = LookUp(*OpenStore(), identity_, spec_, tokens);
  ASSERT_EQ(match.n_tokens, 16);
  EXPECT_TRUE(std::equal(codes.begin(), codes.end(),
                         match.blocks[0].payload.begin(),
                         match.blocks[0].payload.end()));
}

TEST_F(StorePieces, TheyAreEncryptedExportedAndImported) {
  for (const bool encrypted : {false, true}) {
    root_ = dir_.path() + (encrypted ? "/e" : "/p");
    if (encrypted) {
      options_.vault = std::make_shared<const Vault>(Vault::Key{1});
      identity_.name_space = ToHex(options_.vault->name_key());
    }
    for (const int n : {10, 16, 20, 29}) Save(n);
    ExpectFound(29, 29);
    const auto admin = StoreAdmin::Open(root_, nullptr, options_.vault);
    const std::string stem =
        PromptStem("tiny", BlockChain(identity_, TinyTokens(29), 16).end_id());
    const std::string bundle = root_ + ".bundle";
    ASSERT_TRUE(admin->Export(stem, bundle).ok());
    const auto from_bundle =
        LookupBundle(bundle, identity_, spec_, TinyTokens(35), options_.vault);
    EXPECT_EQ(from_bundle.n_tokens, 29) << from_bundle.miss_reason;
    EXPECT_TRUE(IsExact(from_bundle, identity_, spec_, TinyTokens(35)));

    root_ += "2";
    Save(16);  // there, the first block is whole already
    const auto elsewhere = StoreAdmin::Open(root_, nullptr, options_.vault);
    EXPECT_EQ(elsewhere->Import(bundle, {}).value(), stem);
    ExpectFound(29, 29);
    EXPECT_EQ(elsewhere->Show(stem)->tokens, TinyTokens(29));
    EXPECT_TRUE(elsewhere->Verify(false)->defects.empty());
  }
}

TEST_F(StorePieces, ABudgetIsHeldWhileAPromptGrows) {
  options_.disk_budget_bytes = 30'000;
  int n = 0;
  for (; n < 600; n += 7) {
    const TinyPrompt prompt(identity_, spec_, TinyTokens(n + 7));
    if (!prompt.SaveTo(*OpenStore()).ok()) break;
    std::uint64_t bytes = 0;
    for (const auto& entry : fs::recursive_directory_iterator(root_)) {
      if (entry.is_regular_file()) bytes += entry.file_size();
    }
    ASSERT_LE(bytes, options_.disk_budget_bytes) << n;
    ExpectFound(n + 7, n + 7);
  }
  EXPECT_GT(n, 100);  // refused only when the prompt itself fills the budget
}

// The chain loses its end first, piece by piece.
TEST_F(StorePieces, NoPieceIsEvictedBeforeTheOneBehindIt) {
  for (const int n : {10, 16, 20, 29, 32}) Save(n);
  const auto root = Directory::Open(FileOps::System(), root_);
  const auto catalog = ScanStore(*root);
  std::vector<std::string> order;
  for (const std::size_t i : EvictionOrder(*root, *catalog, {}, {}, NowNs())) {
    order.push_back(catalog->files[i].name);
  }
  const auto place = [&](int n_tokens) {
    return std::find(order.begin(), order.end(),
                     fs::path(PathOf(n_tokens)).filename().string());
  };
  EXPECT_LT(place(32), place(29));
  EXPECT_LT(place(29), place(20));
  EXPECT_LT(place(20), place(16));
  EXPECT_LT(place(16), place(10));
  EXPECT_NE(place(10), order.end());
}

// A prompt that grows by a token or three each launch: all bytes that are
// written against the keys and values that came to it.
TEST_F(StorePieces, GrowthByAFewTokensWritesLittleMoreThanItsKeysAndValues) {
  for (const int step : {1, 3, 7, 8}) {
    root_ = dir_.path() + "/grow" + std::to_string(step);
    spec_ = UniformKv{.n_layers = 24,
                      .n_heads = 2,
                      .head_dim = 64,
                      .key_format = KvFormat::kF16,
                      .value_format = KvFormat::kF16};
    identity_ = TinyIdentity(spec_, "qwen2.5-0.5b");
    std::vector<std::byte> memory(KvLayout(spec_, 64).block_bytes(),
                                  std::byte{1});
    constexpr int kBegin = 40, kEnd = 40 + 168;
    const auto tokens = TinyTokens(kEnd);
    const auto save = [&](int n_tokens) {
      const BlockChain chain(
          identity_,
          std::span(tokens).first(static_cast<std::size_t>(n_tokens)), 64);
      const std::size_t last = chain.size() - 1;
      std::vector<ByteSpan> payloads;
      for (std::size_t i = last > 0 ? last - 1 : 0; i <= last; ++i) {
        const auto n = static_cast<int>(chain[i].tokens.size());
        payloads.push_back(
            ByteSpan(memory).first(KvLayout(spec_, n).block_bytes()));
      }
      const auto store = OpenStore();
      ASSERT_TRUE(store
                      ->SaveBlocks(chain, spec_, chain.size() - payloads.size(),
                                   payloads)
                      .ok());
      ASSERT_TRUE(store->SaveManifest(chain, spec_, "").ok());
      // At most what waits is computed again.
      EXPECT_GT(OpenStore()->Lookup(chain, spec_).n_tokens, n_tokens - 8);
    };
    save(kBegin);
    const std::uint64_t before = ops_.n_bytes;
    for (int n = kBegin + step; n <= kEnd; n += step) save(n);
    const std::uint64_t kv_bytes = spec_.BytesOf(kEnd) - spec_.BytesOf(kBegin);
    EXPECT_LE(ops_.n_bytes - before, kv_bytes * 13 / 10) << step;
  }
}

// An agent's 50 turns of 40 tokens, each in a process of its own, with the
// shape of a model of half a billion weights: all bytes that are written, of
// files of every kind, against the keys and values of the conversation.
TEST_F(StorePieces, R51_FiftyTurnsWriteOnlyWhatIsNew) {
  spec_ = UniformKv{.n_layers = 24,
                    .n_heads = 2,
                    .head_dim = 64,
                    .key_format = KvFormat::kF16,
                    .value_format = KvFormat::kF16};
  identity_ = TinyIdentity(spec_, "qwen2.5-0.5b");
  constexpr int kTurns = 50, kTurnTokens = 40;
  std::vector<std::byte> memory(KvLayout(spec_, 64).block_bytes(),
                                std::byte{1});
  const auto tokens = TinyTokens(kTurns * kTurnTokens);
  for (int turn = 1; turn <= kTurns; ++turn) {
    const auto prompt =
        std::span(tokens).first(static_cast<std::size_t>(turn * kTurnTokens));
    const BlockChain chain(identity_, prompt, 64);
    std::vector<ByteSpan> payloads;  // of blocks that have new tokens
    const std::size_t first =
        static_cast<std::size_t>(turn - 1) * kTurnTokens / 64;
    for (std::size_t i = first; i < chain.size(); ++i) {
      const auto of = chain[i].tokens;
      const std::size_t bytes =
          KvLayout(spec_, static_cast<int>(of.size())).block_bytes();
      payloads.push_back(ByteSpan(memory).first(bytes));
    }
    const auto store = OpenStore();
    ASSERT_TRUE(store->SaveBlocks(chain, spec_, first, payloads).ok());
    ASSERT_TRUE(store->SaveManifest(chain, spec_, "").ok());
  }
  const std::uint64_t kv_bytes = spec_.BytesOf(kTurns * kTurnTokens);
  EXPECT_EQ(kv_bytes, 24'576'000u);
  EXPECT_LE(ops_.n_bytes, kv_bytes * 11 / 10);
  RecordProperty("written_percent",
                 static_cast<int>(ops_.n_bytes * 100 / kv_bytes));
  const StoreMatch match = LookUp(*OpenStore(), identity_, spec_, tokens);
  EXPECT_EQ(match.n_tokens, kTurns * kTurnTokens);
}

}  // namespace
}  // namespace hearth
