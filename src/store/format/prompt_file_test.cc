#include "store/format/prompt_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>

#include "base/file.h"
#include "store/format/format_page_testing.h"
#include "store/kv_store.h"
#include "store/tests/store_testing.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

std::vector<std::byte> FileOf(const TinyPrompt& prompt) {
  TempDir dir;
  EXPECT_TRUE(SaveBundle(dir.path() + "/f", prompt).ok());
  const std::string text = *ReadTextFile(dir.path() + "/f");
  const ByteSpan bytes = AsBytes(text);
  return {bytes.begin(), bytes.end()};
}

class PromptFileTest : public testing::Test {
 protected:
  KvSpec spec_ = TinySpec();
  KvIdentity identity_ = TinyIdentity(spec_);
};

TEST_F(PromptFileTest, RoundTripForEveryLength) {
  for (int n = 1; n <= 50; ++n) {
    const TinyPrompt prompt(identity_, spec_, TinyTokens(n));
    const auto header = ParsePromptFile(FileOf(prompt), "f");
    ASSERT_TRUE(header.ok()) << n << ": " << header.error().message;
    EXPECT_EQ(header->n_tokens(), prompt.tokens.size());
    EXPECT_EQ(header->model_name, "tiny");
    ASSERT_EQ(header->entries.size(), prompt.blocks.size());
    for (std::size_t i = 0; i < prompt.blocks.size(); ++i) {
      EXPECT_EQ(header->entries[i].id, prompt.blocks[i].id);
      EXPECT_EQ(header->ParentOf(i), prompt.blocks[i].parent);
      EXPECT_EQ(header->entries[i].image_at % 4096, 0u);
    }
  }
}

TEST_F(PromptFileTest, ABundleWithoutOneOfItsBlocksIsRefused) {
  TempDir dir;
  const TinyPrompt prompt(identity_, spec_, TinyTokens(40));
  const auto store = KvStore::OpenFile(dir.path() + "/f").value();
  ASSERT_TRUE(prompt.SaveBlock(*store, 0).ok());
  ASSERT_TRUE(prompt.SaveBlock(*store, 2).ok());
  EXPECT_EQ(store->SaveManifest(prompt.chain, spec_, "").error().code,
            Code::kNotFound);
  EXPECT_EQ(LookUp(*store, identity_, spec_, prompt.tokens).n_tokens, 16);
}

// What the engine hands over while a long prompt grows.
TEST_F(PromptFileTest, ABundleOfAPromptThatGrowsHasItsBlocksBeforeItIsWhole) {
  TempDir dir;
  const TinyPrompt prompt(identity_, spec_, TinyTokens(16 * 40 + 3));
  const std::string path = dir.path() + "/f";
  std::uint64_t bytes_written = 0;
  {
    const auto store = KvStore::OpenFile(path).value();
    std::uint64_t size = 0;
    for (std::size_t i = 0; i < 40; ++i) {
      ASSERT_TRUE(prompt.SaveBlock(*store, i).ok());
      if (const auto now = std::filesystem::file_size(path); now != size) {
        bytes_written += size = now;
      }
      const int n_found =
          LookUp(*store, identity_, spec_, prompt.tokens).n_tokens;
      EXPECT_GE(2 * n_found, static_cast<int>(16 * i)) << i;
    }
    EXPECT_LE(bytes_written, 2 * size + 8192);
  }
  // Killed here: another process goes on from what the file has.
  const auto store = KvStore::OpenFile(path).value();
  const int n_found = LookUp(*store, identity_, spec_, prompt.tokens).n_tokens;
  for (auto i = static_cast<std::size_t>(n_found) / 16; i <= 40; ++i) {
    ASSERT_TRUE(prompt.SaveBlock(*store, i).ok());
  }
  ASSERT_TRUE(store->SaveManifest(prompt.chain, spec_, "").ok());
  const auto match = LookupBundle(path, identity_, spec_, prompt.tokens);
  EXPECT_EQ(match.n_tokens, 16 * 40 + 3);
  EXPECT_TRUE(IsExact(match, identity_, spec_, prompt.tokens));
}

TEST_F(PromptFileTest, ATargetThatCannotBeIsRefusedBeforeAnyWork) {
  TempDir dir;
  const auto code = [&](const std::string& path) {
    const auto store = KvStore::OpenFile(path);
    return store.ok() ? std::optional<Code>() : store.error().code;
  };
  EXPECT_EQ(code(dir.path() + "/none/x"), Code::kInvalidArgument);
  EXPECT_EQ(code(dir.path()), Code::kInvalidArgument);
  EXPECT_EQ(code("/dev/null"), Code::kInvalidArgument);
  EXPECT_EQ(code(dir.path() + "/"), Code::kInvalidArgument);
  std::ofstream(dir.path() + "/text") << "x";
  EXPECT_EQ(code(dir.path() + "/text"), Code::kInvalidArgument);
  EXPECT_EQ(code(dir.path() + "/text/x"), Code::kInvalidArgument);
  EXPECT_EQ(code(dir.path() + "/new"), std::nullopt);
}

TEST_F(PromptFileTest, BundleServesEveryPrefixAndTheWhole) {
  TempDir dir;
  const std::string path = dir.path() + "/b";
  const TinyPrompt prompt(identity_, spec_, TinyTokens(41));
  ASSERT_TRUE(SaveBundle(path, prompt).ok());
  for (int n = 1; n <= 60; ++n) {
    const auto tokens = TinyTokens(n);
    const StoreMatch match = LookupBundle(path, identity_, spec_, tokens);
    EXPECT_TRUE(IsExact(match, identity_, spec_, tokens));
    EXPECT_EQ(match.n_tokens, std::min(n, 41)) << n;
    EXPECT_EQ(match.miss_reason.empty(), match.n_tokens == n) << n;
  }
}

TEST_F(PromptFileTest, BundleOfAnotherModelFormatOrNameSpaceSaysWhich) {
  TempDir dir;
  const std::string path = dir.path() + "/b";
  const TinyPrompt prompt(identity_, spec_, TinyTokens(41));
  ASSERT_TRUE(SaveBundle(path, prompt).ok());
  const auto reason = [&](const KvIdentity& identity, const KvSpec& spec) {
    const auto match = LookupBundle(path, identity, spec, prompt.tokens);
    EXPECT_EQ(match.n_tokens, 0);
    return match.miss_reason;
  };
  KvIdentity other = identity_;
  other.model_id.bytes[0] ^= 1;
  EXPECT_EQ(reason(other, spec_), path + ": made by another model");
  other = identity_;
  other.name_space = "x";
  EXPECT_EQ(reason(other, spec_), path + ": of another name space");
  const KvSpec wide = TinySpec(32);
  EXPECT_EQ(reason(TinyIdentity(wide), wide),
            path + ": made in another KV format");
}

TEST_F(PromptFileTest, ForeignFileIsNeverOverwritten) {
  TempDir dir;
  const std::string path = dir.path() + "/notes.txt";
  const TinyPrompt prompt(identity_, spec_, TinyTokens(20));
  const auto save = [&] { return SaveBundle(path, prompt); };
  std::ofstream(path) << "my notes";
  EXPECT_EQ(save().error().code, Code::kInvalidArgument);
  EXPECT_EQ(*ReadTextFile(path), "my notes");
  std::filesystem::remove(path);
  std::ofstream(path).close();  // empty: nothing to lose
  EXPECT_TRUE(save().ok());
  EXPECT_TRUE(save().ok());
  EXPECT_EQ(LookupBundle(path, identity_, spec_, prompt.tokens).n_tokens, 20);
}

TEST_F(PromptFileTest, SavingThroughALinkKeepsTheLink) {
  TempDir dir;
  const TinyPrompt prompt(identity_, spec_, TinyTokens(20));
  const std::string link = dir.path() + "/link";
  ASSERT_TRUE(SaveBundle(dir.path() + "/real", prompt).ok());
  std::filesystem::create_symlink("real", link);
  ASSERT_TRUE(SaveBundle(link, prompt).ok());
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ(LookupBundle(link, identity_, spec_, prompt.tokens).n_tokens, 20);
}

TEST_F(PromptFileTest, PiecesKeepTheirPlacesAndMayNotCrossABlock) {
  PromptHeader header;
  header.block_tokens = 16;
  header.root_id.bytes.fill(9);
  for (const std::uint64_t end : {5u, 12u, 16u, 32u, 35u}) {
    PromptEntry entry;
    entry.id.bytes.fill(static_cast<std::uint8_t>(end));
    entry.end = end;
    header.entries.push_back(entry);
  }
  const auto file = EncodePromptFile(header, {});
  ASSERT_TRUE(file.ok());
  const auto parsed = ParsePromptFile(file->header, "f");
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(parsed->n_tokens(), 35u);
  EXPECT_EQ(parsed->FirstOf(2), 12u);
  EXPECT_EQ(parsed->BlockStart(2), 0u);
  EXPECT_EQ(parsed->ParentOf(2), header.root_id);
  EXPECT_EQ(parsed->ParentOf(3), header.entries[2].id);
  EXPECT_EQ(parsed->ParentOf(4), header.entries[3].id);
  EXPECT_FALSE(parsed->EndsBlock(1));
  EXPECT_TRUE(parsed->EndsBlock(2));
  header.entries.erase(header.entries.begin() + 2);  // 12 .. 32
  EXPECT_FALSE(EncodePromptFile(header, {}).ok());
  header.entries.clear();
  EXPECT_FALSE(EncodePromptFile(header, {}).ok());
}

// 19 tokens in blocks of 16, whose first was stored in two pieces.
TEST_F(PromptFileTest, TheFormatPagesExampleIsWhatWeWrite) {
  const KvIdentity identity = PageIdentity();
  const auto tokens = TinyTokens(19);
  const BlockChain chain(identity, tokens, 16);
  PromptHeader header;
  header.model_id = identity.model_id;
  header.format_id = identity.format_id;
  header.root_id = RootId(identity);
  header.block_tokens = 16;
  header.model_name = identity.model_name;
  header.entries = {
      {ChildId(header.root_id, std::span(tokens).first(3)), 3, 0, 0},
      {chain[0].id, 16, 0, 0},
      {chain[1].id, 19, 0, 0}};
  const auto file = EncodePromptFile(header, {});
  ASSERT_TRUE(file.ok());
  ExpectPageShows("manifest.md", file->header);
}

}  // namespace
}  // namespace hearth
