// The tree of a real store, and evicting one branch of it.
#include "store/admin/prompt_tree.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "store/directory/dir_store.h"
#include "store/directory/layout.h"
#include "store/tests/store_testing.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

namespace fs = std::filesystem;

class PromptTreeTest : public testing::Test {
 protected:
  PromptTreeTest() { store_ = KvStore::Open(root_).value(); }

  std::string Save(const std::vector<std::int32_t>& tokens) {
    const TinyPrompt prompt(identity_, spec_, tokens);
    EXPECT_TRUE(prompt.SaveTo(*store_).ok());
    return PromptStem("tiny", prompt.blocks.back().id);
  }
  StoreAdmin Admin() const { return StoreAdmin::Open(root_).value(); }
  PromptTree Tree() const { return Admin().Tree().value(); }
  int Found(const std::vector<std::int32_t>& tokens) const {
    return LookUp(*store_, identity_, spec_, tokens).n_tokens;
  }

  // Blocks of 16: a and b share the first 32 tokens, c goes on from a.
  void SaveThree() {
    a_ = Save(TinyTokens(48));
    auto b = TinyTokens(48);
    b[40] = 3;
    b_ = Save(b);
    c_ = Save(TinyTokens(80));
  }

  TempDir dir_;
  std::string root_ = dir_.path() + "/s";
  KvSpec spec_ = TinySpec();
  KvIdentity identity_ = TinyIdentity(spec_);
  std::unique_ptr<KvStore> store_;
  std::string a_, b_, c_;
};

TEST_F(PromptTreeTest, AnEmptyStoreHasAnEmptyTree) {
  const PromptTree tree = Tree();
  EXPECT_TRUE(tree.prompts.empty());
  EXPECT_TRUE(tree.nodes.empty());
  EXPECT_TRUE(tree.blocks.empty());
}

TEST_F(PromptTreeTest, PromptsThatBeginAlikeHaveOneTrunk) {
  SaveThree();
  const PromptTree tree = Tree();
  ASSERT_EQ(tree.nodes.size(), 4u);
  const PromptTreeNode& trunk = tree.nodes[0];
  EXPECT_EQ(trunk.parent, -1);
  EXPECT_EQ(trunk.n_tokens, 32u);
  EXPECT_EQ(trunk.n_blocks, 2u);
  EXPECT_EQ(trunk.n_prompts, 3);
  EXPECT_EQ(trunk.prompt, -1);
  std::uint64_t tokens = 0;
  for (const PromptTreeNode& node : tree.nodes) {
    tokens += node.n_tokens;
    if (node.prompt < 0) continue;
    const PromptInfo& info =
        tree.prompts[static_cast<std::size_t>(node.prompt)];
    EXPECT_EQ(node.first_token + node.n_tokens, info.n_tokens);
    // c goes on behind a, b parts from both behind the trunk.
    const PromptTreeNode& above =
        tree.nodes[static_cast<std::size_t>(node.parent)];
    if (info.stem == c_) {
      EXPECT_EQ(tree.prompts[static_cast<std::size_t>(above.prompt)].stem, a_);
    } else {
      EXPECT_EQ(above.n_prompts, 3) << info.stem;
    }
  }
  EXPECT_EQ(tokens, 32u + 16u + 16u + 32u);
  EXPECT_EQ(tree.blocks.size(), 6u);
  EXPECT_EQ(tree.blocks[0].n_sharing, 3);
}

TEST_F(PromptTreeTest, TellsOfMissingBlocksAndOfLooseOnes) {
  SaveThree();
  const Digest lost = BlockChain(identity_, TinyTokens(80), 16)[4].id;
  fs::remove(root_ + "/blocks/" + BlockFolder(lost) + "/" + BlockName(lost));
  ASSERT_TRUE(TinyPrompt(identity_, spec_, TinyTokens(16, 9000))
                  .SaveBlocks(*store_)
                  .ok());
  const PromptTree tree = Tree();
  std::uint64_t missing = 0;
  for (const PromptTreeNode& node : tree.nodes) {
    missing += node.n_blocks - node.n_blocks_present;
  }
  EXPECT_EQ(missing, 1u);
  EXPECT_EQ(tree.blocks.back().node, -1);
  EXPECT_EQ(tree.blocks.back().n_sharing, 0);
  EXPECT_TRUE(tree.blocks.back().present);
}

TEST_F(PromptTreeTest, EvictingTakesWhatNoOtherPromptHas) {
  SaveThree();
  const auto report = Admin().Evict(c_);
  ASSERT_TRUE(report.ok());
  EXPECT_TRUE(report->left.empty());
  EXPECT_EQ(Tree().prompts.size(), 2u);
  EXPECT_EQ(Found(TinyTokens(80)), 48);
  EXPECT_EQ(Found(TinyTokens(48)), 48);
  EXPECT_EQ(Admin().Evict(c_).error().code, Code::kNotFound);
}

TEST_F(PromptTreeTest, APinnedPromptIsNotEvicted) {
  SaveThree();
  ASSERT_TRUE(Admin().Pin(c_).ok());
  EXPECT_EQ(Admin().Evict(c_).error().code, Code::kInvalidArgument);
  EXPECT_EQ(Found(TinyTokens(80)), 80);
}

}  // namespace
}  // namespace hearth
