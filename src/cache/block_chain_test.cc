#include "cache/block_chain.h"

#include <gtest/gtest.h>

#include <random>

namespace hearth {
namespace {

std::vector<std::int32_t> Tokens(int n) {
  std::vector<std::int32_t> tokens;
  for (int i = 0; i < n; ++i) tokens.push_back(i * 7 + 1);
  return tokens;
}

TEST(BlockChain, EachBlockStandsBehindTheOneBefore) {
  KvIdentity identity;
  identity.name_space = "a";
  const auto tokens = Tokens(41);
  const BlockChain chain(identity, tokens, 16);
  ASSERT_EQ(chain.size(), 3u);
  EXPECT_EQ(chain.n_full(), 2u);
  Digest parent = RootId(identity);
  for (std::size_t i = 0; i < chain.size(); ++i) {
    EXPECT_EQ(chain[i].parent, parent);
    EXPECT_EQ(chain[i].id, ChildId(parent, chain[i].tokens));
    parent = chain[i].id;
  }
  EXPECT_EQ(chain[2].tokens.size(), 9u);
  EXPECT_EQ(chain.end_id(), parent);
  EXPECT_EQ(chain.BeginOf(3), 41u);
}

TEST(BlockChain, GrownAndCutItIsTheChainOfItsTokens) {
  std::mt19937 random(1);
  const auto all = Tokens(200);
  BlockChain chain({}, {}, 16);
  for (int i = 0; i < 200; ++i) {
    const std::size_t n = random() % (all.size() + 1);
    if (n < chain.tokens().size()) {
      chain.Truncate(n);
    } else {
      chain.Append(std::span(all).subspan(chain.tokens().size(),
                                          n - chain.tokens().size()));
    }
    const BlockChain whole({}, std::span(all).first(n), 16);
    ASSERT_EQ(chain.size(), whole.size());
    for (std::size_t b = 0; b < chain.size(); ++b) {
      ASSERT_EQ(chain[b].id, whole[b].id);
      ASSERT_EQ(chain[b].parent, whole[b].parent);
    }
  }
}

}  // namespace
}  // namespace hearth
