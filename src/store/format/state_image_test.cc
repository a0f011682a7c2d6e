#include "store/format/state_image.h"

#include <gtest/gtest.h>

#include "cache/states/state_layout.h"
#include "store/format/block_image.h"
#include "store/format/format_page_testing.h"
#include "store/tests/store_testing.h"

namespace hearth {
namespace {

KvSpec PageSpec() {
  KvSpec spec;
  spec.block_tokens = 16;
  spec.states = {{StateRule::kLastInputs, {2, 4}},
                 {StateRule::kDeltaNet, {1, 4, 4}}};
  return spec;
}

// Numbers 0, 1/8, 2/8, ... and zeros behind each state.
std::vector<std::byte> PagePayload(const KvSpec& spec) {
  const StateLayout layout(spec.states);
  std::vector<std::byte> payload(layout.bytes());
  for (int i = 0; i < layout.n_states(); ++i) {
    for (std::size_t at = layout.offset(i); at < layout.end(i); at += 4) {
      StoreLe(payload.data() + at, static_cast<float>(at / 4) / 8);
    }
  }
  return payload;
}

class StateImageTest : public testing::Test {
 protected:
  std::vector<std::byte> Image() const {
    const auto payload = PagePayload(spec_);
    auto image = EncodeStateHeader(spec_, query_, payload).value();
    image.insert(image.end(), payload.begin(), payload.end());
    return image;
  }
  Code CodeOf(ByteSpan image) const {
    const auto opened = OpenStateImage(image, spec_, query_, true, "image");
    EXPECT_FALSE(opened.ok());
    return opened.ok() ? Code::kCancelled : opened.error().code;
  }

  KvSpec spec_ = PageSpec();
  BlockChain chain_{PageIdentity(), TinyTokens(19), 16};
  StateQuery query_ = StateQueryOf(chain_, 19);
};

TEST_F(StateImageTest, WhatWasWrittenIsRead) {
  const auto image = Image();
  const auto payload = OpenStateImage(image, spec_, query_, true, "image");
  ASSERT_TRUE(payload.ok()) << payload.error().message;
  const auto right = PagePayload(spec_);
  EXPECT_TRUE(
      std::equal(payload->begin(), payload->end(), right.begin(), right.end()));
}

TEST_F(StateImageTest, APrefixOfAnyLengthHasItsId) {
  EXPECT_EQ(StateQueryOf(chain_, 16).prefix.block_id, chain_[0].id);
  EXPECT_EQ(query_.prefix.block_id, chain_[1].id);
  EXPECT_EQ(StateQueryOf(chain_, 18).prefix.block_id,
            ChildId(chain_[0].id, chain_[1].tokens.first(2)));
  EXPECT_EQ(StateQueryOf(chain_, 3).prefix.parent_id, chain_.root_id());
}

TEST_F(StateImageTest, OfAnotherPlaceItIsRefused) {
  const auto image = Image();
  for (const std::size_t n : {16, 18}) {
    EXPECT_FALSE(
        OpenStateImage(image, spec_, StateQueryOf(chain_, n), true, "x").ok());
  }
  StateQuery further = query_;
  further.position = 35;
  EXPECT_FALSE(OpenStateImage(image, spec_, further, true, "x").ok());
}

TEST_F(StateImageTest, ABlockIsNoStateNorTheOtherWayRound) {
  const auto image = Image();
  EXPECT_FALSE(ParseBlockHeader(image, image.size(), "x").ok());
  const TinyPrompt prompt(TinyIdentity(TinySpec()), TinySpec(), TinyTokens(16));
  auto block =
      EncodeBlockHeader(prompt.identity, prompt.chain.root_id(), prompt.spec,
                        prompt.blocks[0].parent, prompt.blocks[0].id,
                        prompt.blocks[0].tokens, prompt.payloads[0])
          .value();
  block.insert(block.end(), prompt.payloads[0].begin(),
               prompt.payloads[0].end());
  EXPECT_FALSE(ParseStateHeader(block, block.size(), "x").ok());
}

TEST_F(StateImageTest, OfOtherShapesItIsRefused) {
  const auto image = Image();
  KvSpec other = spec_;
  other.states.pop_back();
  EXPECT_FALSE(OpenStateImage(image, other, query_, true, "x").ok());
  other = spec_;
  other.states[1].dims[2] = 20;
  EXPECT_FALSE(OpenStateImage(image, other, query_, true, "x").ok());
  EXPECT_FALSE(EncodeStateHeader(other, query_, PagePayload(spec_)).ok());
}

TEST_F(StateImageTest, EveryLengthIsChecked) {
  const auto image = Image();
  for (std::size_t n = 0; n < image.size(); n += n < 300 ? 1 : 61) {
    EXPECT_EQ(CodeOf(ByteSpan(image).first(n)), Code::kCorrupt) << n;
  }
}

TEST_F(StateImageTest, AMacTellsWhoMadeIt) {
  Vault::Key key{}, other{};
  other[0] = 1;
  const Vault right(key), wrong(other);
  const auto payload = PagePayload(spec_);
  const auto mac = MakeStateMac(right, query_, payload);
  auto image = EncodeStateHeader(spec_, query_, payload, mac).value();
  image.insert(image.end(), payload.begin(), payload.end());
  image.insert(image.end(), mac.begin(), mac.end());
  EXPECT_TRUE(OpenStateImage(image, spec_, query_, true, "x").ok());
  const auto header = ParseStateHeader(image, image.size(), "x").value();
  EXPECT_TRUE(CheckStateMac(image, header, right, "x").ok());
  EXPECT_FALSE(CheckStateMac(image, header, wrong, "x").ok());
  const auto bare = Image();
  EXPECT_FALSE(CheckStateMac(bare,
                             ParseStateHeader(bare, bare.size(), "x").value(),
                             right, "x")
                   .ok());
}

TEST_F(StateImageTest, TheFormatPagesExampleIsWhatWeWrite) {
  const auto image = Image();
  ExpectPageShows("state.md", ByteSpan(image).first(StatedHeaderBytes(image)));
}

}  // namespace
}  // namespace hearth
