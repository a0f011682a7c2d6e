#include "serve/page/cache_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace hearth::serve {
namespace {

using Json = nlohmann::json;

PromptTree SomeTree() {
  PromptTree tree;
  PromptInfo prompt;
  prompt.stem = "tiny-0123456789ab";
  prompt.n_tokens = 96;
  prompt.n_tokens_usable = 64;
  prompt.last_use_ns = 5'000'000'000;
  tree.prompts = {prompt};
  PromptTreeNode trunk, end;
  trunk.n_tokens = 64;
  end.parent = 0;
  end.first_token = 64;
  end.n_tokens = 32;
  end.prompt = 0;
  tree.nodes = {trunk, end};
  tree.blocks = {{std::string(64, 'a'), 0, 64, 100, true, 3, 4'000'000'000},
                 {std::string(64, 'b'), 1, 32, 0, false, 1, 9'000'000'000}};
  return tree;
}

TEST(CacheJson, ATreeHasItsPromptsNodesAndBlocksInColumns) {
  const Json json = Json::parse(CacheTreeJson(SomeTree(), 7000));
  EXPECT_EQ(json["prompts"][0]["node"], 1);
  EXPECT_EQ(json["prompts"][0]["last_use_ms"], 5000);
  EXPECT_EQ(json["nodes"][1]["first_token"], 64);
  EXPECT_EQ(json["blocks"]["id"],
            Json::parse(R"(["aaaaaaaaaaaa","bbbbbbbbbbbb"])"));
  EXPECT_EQ(json["blocks"]["shared"], Json::parse("[3,1]"));
  EXPECT_EQ(json["blocks"]["present"], Json::parse("[1,0]"));
  // A use in the future is one of now.
  EXPECT_EQ(json["blocks"]["age_s"], Json::parse("[3,0]"));
  EXPECT_EQ(json["blocks"]["left_out"], 0);
}

TEST(CacheJson, TextIsThereOnlyWhereItWasKept) {
  PromptTree tree = SomeTree();
  EXPECT_FALSE(
      Json::parse(CacheTreeJson(tree, 0))["prompts"][0].contains("preview"));
  tree.prompts[0].preview = "Once upon";
  EXPECT_EQ(Json::parse(CacheTreeJson(tree, 0))["prompts"][0]["preview"],
            "Once upon");
}

TEST(CacheJson, WhatAPageCannotDrawIsCounted) {
  PromptTree tree;
  tree.blocks.resize(kPageBlocksMax + 5);
  const Json json = Json::parse(CacheTreeJson(tree, 0));
  EXPECT_EQ(json["blocks"]["id"].size(), kPageBlocksMax);
  EXPECT_EQ(json["blocks"]["left_out"], 5);
}

TEST(CacheJson, WhyHasNoTextOfAnotherPrompt) {
  CacheMiss miss;
  miss.n_tokens = 10;
  miss.n_tokens_stored = 4;
  miss.reason = "block 1 is damaged";
  miss.parting = PartingPlace{3, "mine", "somebody else's"};
  const std::string text = CacheWhyJson(miss);
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("else")));
  const Json json = Json::parse(text);
  EXPECT_EQ(json["tokens_kept"], 4);
  EXPECT_EQ(json["miss_reason"], "block 1 is damaged");
}

}  // namespace
}  // namespace hearth::serve
