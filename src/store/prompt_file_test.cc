#include "store/prompt_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "store/bundle.h"
#include "store/format_page_testing.h"
#include "store/store_testing.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

std::vector<std::byte> FileOf(const TinyPrompt& prompt,
                              std::span<const BlockToSave> blocks) {
  auto file = EncodePrompt(prompt.identity, prompt.spec, prompt.tokens, blocks);
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
    EXPECT_EQ(header->tokens, prompt.tokens);
    EXPECT_EQ(header->model_name, "tiny");
    ASSERT_EQ(header->blocks.size(), prompt.blocks.size());
    for (std::size_t i = 0; i < prompt.blocks.size(); ++i) {
      EXPECT_EQ(header->blocks[i].id, prompt.blocks[i].id);
      EXPECT_EQ(header->ParentOf(i), prompt.blocks[i].parent);
      EXPECT_EQ(header->blocks[i].image_at % 4096, 0u);
    }
  }
}

TEST_F(PromptFileTest, BlocksThatAreNotThePromptsAreRefused) {
  const TinyPrompt prompt(identity_, spec_, TinyTokens(40));
  const TinyPrompt other(identity_, spec_, TinyTokens(40, 1));
  EXPECT_FALSE(
      EncodePrompt(identity_, spec_, prompt.tokens, other.blocks).ok());
  const auto short_of_one = std::span(prompt.blocks).first(2);
  EXPECT_FALSE(
      EncodePrompt(identity_, spec_, prompt.tokens, short_of_one).ok());
  EXPECT_FALSE(EncodePrompt(identity_, spec_, {}, {}).ok());
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

TEST_F(PromptFileTest, TheFormatPagesExampleIsWhatWeWrite) {
  const TinyPrompt prompt(PageIdentity(), spec_, TinyTokens(19));
  const auto file = FileOf(prompt, std::span(prompt.blocks).last(1));
  ExpectPageShows("manifest.md", ByteSpan(file).first(4096));
}

}  // namespace
}  // namespace hearth
