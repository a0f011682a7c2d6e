#include "cli/cache/tree_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hearth::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

PromptTreeNode Node(int parent, std::uint64_t tokens, int prompts, int prompt) {
  PromptTreeNode node;
  node.parent = parent;
  node.n_tokens = tokens;
  node.n_blocks = node.n_blocks_present = tokens / 16;
  node.bytes = tokens * 100;
  node.n_prompts = prompts;
  node.prompt = prompt;
  return node;
}

// A trunk of 64; one prompt goes on by 16 and again by 32, another by 48.
PromptTree SomeTree() {
  PromptTree tree;
  for (const char* stem : {"tiny-aaa", "tiny-bbb", "tiny-ccc"}) {
    PromptInfo info;
    info.stem = stem;
    info.n_tokens = info.n_tokens_usable = 64;
    tree.prompts.push_back(info);
  }
  tree.nodes = {Node(-1, 64, 3, -1), Node(0, 16, 2, 0), Node(1, 32, 1, 1),
                Node(0, 48, 1, 2)};
  return tree;
}

TEST(CacheTree, GoesFurtherInOnlyWherePromptsPart) {
  EXPECT_EQ(ToText(SomeTree()),
            "64 tokens, 3 prompts, 6.4 kB\n"
            "├─ 16 tokens, 2 prompts, 1.6 kB  tiny-aaa, -\n"
            "│  + 32 tokens, 3.2 kB  tiny-bbb, -\n"
            "└─ 48 tokens, 4.8 kB  tiny-ccc, -\n");
}

TEST(CacheTree, SaysWhatIsMissingPinnedAndLoose) {
  PromptTree tree = SomeTree();
  tree.nodes[3].n_blocks_present = 1;
  tree.prompts[2].n_tokens_usable = 16;
  tree.prompts[2].pinned = true;
  tree.blocks.resize(2);
  tree.blocks[1].node = 0;
  tree.n_locked = 2;
  const std::string text = ToText(tree);
  EXPECT_THAT(text, HasSubstr("48 tokens, 4.8 kB, 2 blocks missing  tiny-ccc, "
                              "-, pinned, usable up to token 16\n"));
  EXPECT_THAT(text, HasSubstr("1 block of no prompt yet"));
  EXPECT_THAT(text, HasSubstr("2 prompts of another key"));
}

TEST(CacheTree, NamesCannotSteerTheTerminal) {
  PromptTree tree = SomeTree();
  tree.prompts[0].stem = "\x1b[2J";
  EXPECT_THAT(ToText(tree), HasSubstr("\\x1b[2J"));
}

TEST(CacheTree, AThousandTurnsAreNotIndented) {
  PromptTree tree;
  PromptInfo info;
  info.stem = "x";
  tree.prompts = {info};
  for (int i = 0; i < 1000; ++i) tree.nodes.push_back(Node(i - 1, 16, 1, 0));
  EXPECT_THAT(ToText(tree), HasSubstr("\n+ 16 tokens"));
  EXPECT_LT(ToText(tree).size(), 100'000u);
}

TEST(CacheTree, AnEmptyOneSaysSo) {
  EXPECT_EQ(ToText(PromptTree{}), "no stored prompts\n");
}

TEST(CacheTree, AsJson) {
  const std::string json = ToJson(SomeTree()).dump();
  EXPECT_THAT(json,
              StartsWith(R"({"nodes":[{"parent":null,"first_token":0,)"
                         R"("tokens":64,"blocks":4,"blocks_present":4,)"));
  EXPECT_THAT(json, HasSubstr(R"("prompt":"tiny-bbb"})"));
}

}  // namespace
}  // namespace hearth::cli
