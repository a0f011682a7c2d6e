#include "store/format/prompt_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "store/format/bundle.h"
#include "store/format/format_page_testing.h"
#include "store/tests/store_testing.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

std::vector<std::byte> FileOf(const TinyPrompt& prompt,
                              std::span<const BlockToSave> blocks) {
  auto file = EncodeBundle(prompt.identity, prompt.spec, prompt.tokens, blocks);
  EXPECT_TRUE(file.ok());
  std::vector<std::byte> bytes;
  for (const ByteSpan part : file->parts) {
    bytes.insert(bytes.end(), part.begin(), part.end());
  }
  return bytes;
}

class PromptFileTest : public testing::Test {
 protected:
  KvSpec spec_ = TinySpec();
  KvIdentity identity_ = TinyIdentity(spec_);
};

TEST_F(PromptFileTest, RoundTripForEveryLength) {
  for (int n = 1; n <= 50; ++n) {
    const TinyPrompt prompt(identity_, spec_, TinyTokens(n));
    const auto header = ParsePromptFile(FileOf(prompt, prompt.blocks), "f");
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

TEST_F(PromptFileTest, BlocksThatAreNotThePromptsAreRefused) {
  const TinyPrompt prompt(identity_, spec_, TinyTokens(40));
  const TinyPrompt other(identity_, spec_, TinyTokens(40, 1));
  EXPECT_FALSE(
      EncodeBundle(identity_, spec_, prompt.tokens, other.blocks).ok());
  const auto short_of_one = std::span(prompt.blocks).first(2);
  EXPECT_FALSE(
      EncodeBundle(identity_, spec_, prompt.tokens, short_of_one).ok());
  EXPECT_FALSE(EncodeBundle(identity_, spec_, {}, {}).ok());
}

TEST_F(PromptFileTest, BundleServesEveryPrefixOfWholeBlocksAndTheWhole) {
  TempDir dir;
  const std::string path = dir.path() + "/b";
  const TinyPrompt prompt(identity_, spec_, TinyTokens(41));
  ASSERT_TRUE(
      SaveBundle(path, identity_, spec_, prompt.tokens, prompt.blocks).ok());
  for (int n = 1; n <= 60; ++n) {
    const auto tokens = TinyTokens(n);
    const StoreMatch match = LookupBundle(path, identity_, spec_, tokens);
    EXPECT_TRUE(IsExact(match, identity_, spec_, tokens));
    EXPECT_EQ(match.n_tokens, n >= 41 ? 41 : n / 16 * 16) << n;
    EXPECT_EQ(match.miss_reason.empty(), match.n_tokens == n) << n;
  }
}

TEST_F(PromptFileTest, BundleOfAnotherModelFormatOrNameSpaceSaysWhich) {
  TempDir dir;
  const std::string path = dir.path() + "/b";
  const TinyPrompt prompt(identity_, spec_, TinyTokens(41));
  ASSERT_TRUE(
      SaveBundle(path, identity_, spec_, prompt.tokens, prompt.blocks).ok());
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
  const auto save = [&] {
    return SaveBundle(path, identity_, spec_, prompt.tokens, prompt.blocks);
  };
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
  ASSERT_TRUE(SaveBundle(dir.path() + "/real", identity_, spec_, prompt.tokens,
                         prompt.blocks)
                  .ok());
  std::filesystem::create_symlink("real", link);
  ASSERT_TRUE(
      SaveBundle(link, identity_, spec_, prompt.tokens, prompt.blocks).ok());
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
  const auto chain = ChainIds(identity, tokens, 16);
  PromptHeader header;
  header.model_id = identity.model_id;
  header.format_id = identity.format_id;
  header.root_id = RootId(identity);
  header.block_tokens = 16;
  header.model_name = identity.model_name;
  header.entries = {
      {ChildId(header.root_id, std::span(tokens).first(3)), 3, 0, 0},
      {chain[0], 16, 0, 0},
      {chain[1], 19, 0, 0}};
  const auto file = EncodePromptFile(header, {});
  ASSERT_TRUE(file.ok());
  ExpectPageShows("manifest.md", file->header);
}

}  // namespace
}  // namespace hearth
