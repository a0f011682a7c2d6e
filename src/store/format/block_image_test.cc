#include "store/format/block_image.h"

#include <gtest/gtest.h>

#include "store/format/format_page_testing.h"
#include "store/tests/store_testing.h"

namespace hearth {
namespace {

class BlockImageTest : public testing::Test {
 protected:
  BlockImageTest()
      : spec_(TinySpec()), prompt_(PageIdentity(), spec_, TinyTokens(3)) {}

  std::vector<std::byte> Image() const {
    const TinyBlock& block = prompt_.blocks[0];
    auto image =
        EncodeBlockHeader(prompt_.identity, block.parent, spec_, block.parent,
                          block.id, block.tokens, block.payload);
    EXPECT_TRUE(image.ok());
    image->insert(image->end(), block.payload.begin(), block.payload.end());
    return std::move(image).value();
  }
  BlockQuery Query() const {
    const TinyBlock& block = prompt_.blocks[0];
    return {prompt_.identity.model_id,
            prompt_.identity.format_id,
            block.parent,
            block.parent,
            block.id,
            block.tokens};
  }
  // `image` with its header's checksum made right again, as a later version or
  // a forger would write it.
  static std::vector<std::byte> Resealed(std::vector<std::byte> image) {
    const auto header_bytes = StatedHeaderBytes(image);
    StoreLe(image.data() + kBlockChecksumAt,
            Checksum64(ByteSpan(image).subspan(
                kBlockVersionAt, header_bytes - kBlockVersionAt)));
    return image;
  }
  Result<ByteSpan> Open(ByteSpan image) const {
    HEARTH_ASSIGN(const OpenImage opened,
                  OpenBlockImage(image, spec_, Query(), true, "image"));
    return opened.payload;
  }
  Code CodeOf(ByteSpan image) const {
    const auto opened = Open(image);
    EXPECT_FALSE(opened.ok());
    return opened.ok() ? Code::kIo : opened.error().code;
  }

  KvSpec spec_;
  TinyPrompt prompt_;
};

TEST_F(BlockImageTest, RoundTripGivesThePayloadInPlace) {
  const auto image = Image();
  const auto payload = Open(image);
  ASSERT_TRUE(payload.ok());
  EXPECT_EQ(payload->data(), image.data() + StatedHeaderBytes(image));
  EXPECT_TRUE(std::equal(payload->begin(), payload->end(),
                         prompt_.payloads[0].begin(),
                         prompt_.payloads[0].end()));
}

TEST_F(BlockImageTest, TwoWritersOfOneBlockWriteTheSameBytes) {
  EXPECT_EQ(Image(), Image());
}

TEST_F(BlockImageTest, AnotherVersionIsIncompatibleAndNoDamage) {
  auto image = Image();
  StoreLe(image.data() + kBlockVersionAt, std::uint32_t{3});
  EXPECT_EQ(CodeOf(image), Code::kCorrupt);
  EXPECT_EQ(CodeOf(Resealed(image)), Code::kIncompatible);
}

TEST_F(BlockImageTest, EveryKeyFieldMustBeTheOneAskedFor) {
  for (const std::size_t at :
       {kBlockModelIdAt, kBlockFormatIdAt, kBlockRootIdAt, kBlockParentIdAt,
        kBlockIdAt, kBlockTokensAt}) {
    auto image = Image();
    image[at] ^= std::byte{1};
    EXPECT_EQ(CodeOf(Resealed(image)), Code::kCorrupt) << at;
  }
}

// Adds one section of an unknown kind, of 64 bytes, to the image.
std::vector<std::byte> WithUnknownSection(std::vector<std::byte> image,
                                          std::uint16_t flags) {
  const auto n_tokens =
      LoadLe<std::uint32_t>(image.data() + kBlockTokenCountAt);
  const auto n = LoadLe<std::uint32_t>(image.data() + kBlockSectionCountAt);
  const auto payload_bytes =
      LoadLe<std::uint64_t>(image.data() + kBlockPayloadBytesAt);
  const std::size_t at =
      (kBlockTokensAt + 4 * n_tokens + 7) / 8 * 8 + n * kSectionBytes;
  StoreLe(image.data() + at, std::uint16_t{77});
  StoreLe(image.data() + at + 2, flags);
  StoreLe(image.data() + at + 8, payload_bytes);
  StoreLe(image.data() + at + 16, std::uint64_t{64});
  const std::vector<std::byte> extra(64, std::byte{9});
  StoreLe(image.data() + at + 24, Checksum64(extra));
  StoreLe(image.data() + kBlockSectionCountAt, n + 1);
  StoreLe(image.data() + kBlockPayloadBytesAt, payload_bytes + 64);
  image.insert(image.end(), extra.begin(), extra.end());
  return image;
}

TEST_F(BlockImageTest, UnknownSectionIsIgnoredUnlessItIsRequired) {
  const auto optional = Resealed(WithUnknownSection(Image(), 0));
  const auto payload = Open(optional);
  ASSERT_TRUE(payload.ok()) << payload.error().message;
  EXPECT_EQ(payload->size(), prompt_.payloads[0].size());
  EXPECT_EQ(CodeOf(Resealed(WithUnknownSection(Image(), kSectionRequired))),
            Code::kUnsupported);
}

TEST_F(BlockImageTest, SectionsThatAreNotTheLayoutsAreRefused) {
  const std::size_t sections_at = (kBlockTokensAt + 3 * 4 + 7) / 8 * 8;
  for (const std::size_t field : {0, 4, 8, 16}) {  // kind layer offset length
    for (const int delta : {1, 64, 0x8000}) {
      auto image = Image();
      std::byte* p = image.data() + sections_at + kSectionBytes + field;
      StoreLe(p, static_cast<std::uint16_t>(LoadLe<std::uint16_t>(p) + delta));
      const auto opened = Open(Resealed(image));
      EXPECT_FALSE(opened.ok()) << field << " " << delta;
    }
  }
}

TEST_F(BlockImageTest, WithoutVerifyingOnlyThePayloadIsTrusted) {
  auto image = Image();
  image.back() ^= std::byte{1};
  EXPECT_EQ(CodeOf(image), Code::kCorrupt);
  EXPECT_TRUE(OpenBlockImage(image, spec_, Query(), false, "image").ok());
  image[kBlockTokensAt] ^= std::byte{1};
  EXPECT_FALSE(OpenBlockImage(image, spec_, Query(), false, "image").ok());
}

TEST_F(BlockImageTest, EncodingRefusesSizesThatDoNotFit) {
  const TinyBlock& block = prompt_.blocks[0];
  const auto encode = [&](std::span<const std::int32_t> tokens,
                          ByteSpan payload) {
    return EncodeBlockHeader(prompt_.identity, block.parent, spec_,
                             block.parent, block.id, tokens, payload)
        .ok();
  };
  EXPECT_TRUE(encode(block.tokens, block.payload));
  EXPECT_FALSE(encode(block.tokens, block.payload.first(511)));
  EXPECT_FALSE(encode({}, {}));
  const auto many = TinyTokens(17);
  EXPECT_FALSE(encode(many, TinyPayload(spec_, block.parent, many)));
}

TEST_F(BlockImageTest, TheFormatPagesExampleIsWhatWeWrite) {
  const auto image = Image();
  ExpectPageShows("block.md", ByteSpan(image).first(StatedHeaderBytes(image)));
}

}  // namespace
}  // namespace hearth
