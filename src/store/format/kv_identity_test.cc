// That block bytes and ids of a model stay what they were, and that shapes of
// any kind come back from an image.
#include <gtest/gtest.h>

#include <string_view>

#include "cache/block_chain.h"
#include "cache/kv_sequence.h"
#include "store/format/block_image.h"
#include "store/tests/store_testing.h"
#include "testing/own_sequence.h"

namespace hearth {
namespace {

// Written by the version before specs were lists (commit ed04961): what was
// stored then is found now.
struct Golden {
  KvFormat keys, values;
  std::string_view format_id, full_image, tail_image;
};
constexpr Golden kGoldens[] = {
    {KvFormat::kF32, KvFormat::kF32,
     "d619871af9b6901ae903d49a51aa04e7631fe4f2f50c25ce3696153a21e6ffa1",
     "d93abe59230136ff56f647ba9f248beab423a22ed302b9900573995e09d41d0a",
     "22f74ceb94df5ec4df14b6482cf0a2eae83e2ca7baafbc4d44f3a0d0de829978"},
    {KvFormat::kF16, KvFormat::kF16,
     "c54419c6e99d32a073924ad5597d3a9c2deeb58f2cd4873e2b6c61658a9bf848",
     "4a5f439c1cde5f0e6b607c0296d73317cda9d28617a11826b16b8d5a0c87b035",
     "57acb3fbe944777ebcc6f6588725c4ccbf1c87a82841d52c11366a4720a16241"},
    {KvFormat::kInt8, KvFormat::kInt8,
     "2de64c42687a6c3a986dffed946e6479b7c4104be1cc37262da44896f5ea6553",
     "ed419e93fb974818c6a5066ab703ecc0e5fd0dcb125a203ebe16616bf7c02bc3",
     "3d17c0460e13aed08a91e45b874c3e0bac1348f95ca75445b86c722d0deb5195"},
    {KvFormat::kInt4, KvFormat::kInt4,
     "03de5c6169e6f8432c1a71ca9dd074c52e6fd466878e26dcd8a0cd21d544cd80",
     "5357df6ddb1e85819129aaba7b18d7045523d910ecf9d6718ab5153084659fe6",
     "fdc3aa7ba8756b8f6679ae69f7e1e577155841cafc411accbacaef591d5662d4"},
    {KvFormat::kInt8, KvFormat::kInt4,
     "883b7f991bd86e4675b3d48f19f1705469c0c6087a97e7ccfe6e2e8ab33f857d",
     "1856717d3db1e61670a1086e843294b1a171155a1d83ba277ff8e94a071cc94c",
     "df0b108fc554eaf7931f2f2ebdb2e943d4b74d0b9f7c9136043d13fdbca24816"},
    {KvFormat::kF16, KvFormat::kBF16,
     "ccd9cfb11b0ac6fd77f462d4f12d3b373fed65e92ba2342239f4f19aaab6dd02",
     "d119173026c703a565785bda9b52515fe155d499e66d0bcee0cfd45ef2f15f2d",
     "536d1ba83d88183ad6eb723a2cbdcead1f02c97c788b0128774e229c9d19ca6d"},
};

// 21 tokens whose numbers are functions of where they are.
std::unique_ptr<KvSequence> Sample(const KvSpec& spec, int n_tokens) {
  auto made = OwnSequence(spec);
  EXPECT_TRUE(made->Extend(n_tokens).ok());
  for (int layer = 0; layer < spec.n_layers(); ++layer) {
    const KvLayer& shape = spec.layer(layer);
    made->BeginLayer(layer);
    for (int head = 0; head < shape.n_heads; ++head) {
      std::vector<float> keys, values;
      const auto number = [](int n, int modulus) {
        return static_cast<float>(n % modulus - modulus / 2) / 16;
      };
      for (int t = 0; t < n_tokens; ++t) {
        for (int d = 0; d < shape.key_dim; ++d) {
          keys.push_back(number(t * 37 + layer * 11 + head * 5 + d * 3, 101));
          values.push_back(number(t * 29 + layer * 13 + head * 7 + d * 17, 97));
        }
      }
      made->WriteHead(layer, head, keys.data(), values.data(), shape.key_dim);
    }
  }
  made->Commit();
  return made;
}

TEST(KvIdentity, BytesAndIdsOfUniformSpecsStayAsTheyWere) {
  for (const Golden& golden : kGoldens) {
    const KvSpec spec(UniformKv{.n_layers = 3,
                                .n_heads = 2,
                                .head_dim = 12,
                                .key_format = golden.keys,
                                .value_format = golden.values,
                                .block_tokens = 16});
    EXPECT_EQ(ToHex(FormatId(spec)), golden.format_id);
    const KvIdentity identity = TinyIdentity(spec, "golden");
    const auto tokens = TinyTokens(21);
    const BlockChain chain(identity, tokens, 16);
    const auto sequence = Sample(spec, 21);
    for (const bool tail : {false, true}) {
      const std::size_t i = tail ? 1 : 0;
      const BlockImage image =
          *sequence->Image(static_cast<int>(i), tail ? 5 : 16);
      auto bytes =
          EncodeBlockHeader(identity, chain.root_id(), spec, chain[i].parent,
                            chain[i].id, chain[i].tokens, image.payload);
      ASSERT_TRUE(bytes.ok());
      bytes->insert(bytes->end(), image.payload.begin(), image.payload.end());
      EXPECT_EQ(ToHex(Sha256().Field(ByteSpan(*bytes)).Finish()),
                tail ? golden.tail_image : golden.full_image)
          << NameOf(golden.keys) << "/" << NameOf(golden.values);
    }
  }
}

// Two head shapes beside each other, and keys without values.
std::vector<KvSpec> ListedSpecs() {
  KvSpec two_shapes, keys_only;
  two_shapes.layers = {
      {.n_heads = 4, .key_dim = 8, .value_dim = 8},
      {.n_heads = 1, .key_dim = 16, .value_dim = 16},
      {.n_heads = 4, .key_dim = 8, .value_dim = 8},
  };
  keys_only.layers.assign(3, {.n_heads = 1, .key_dim = 36, .value_dim = 0});
  for (KvSpec* spec : {&two_shapes, &keys_only}) {
    spec->SetFormat(KvFormat::kF16);
    spec->block_tokens = 16;
  }
  return {two_shapes, keys_only};
}

TEST(KvIdentity, ImagesOfListedShapesComeBackAndHaveNoSectionsTheyLack) {
  for (const KvSpec& spec : ListedSpecs()) {
    const KvIdentity identity = TinyIdentity(spec);
    const TinyPrompt prompt(identity, spec, TinyTokens(16));
    const TinyBlock& block = prompt.blocks[0];
    auto image = EncodeBlockHeader(identity, block.parent, spec, block.parent,
                                   block.id, block.tokens, block.payload);
    ASSERT_TRUE(image.ok());
    image->insert(image->end(), block.payload.begin(), block.payload.end());
    const auto header = ParseBlockHeader(*image, image->size(), "image");
    ASSERT_TRUE(header.ok());
    EXPECT_EQ(header->sections.size(), spec.layer(0).value_dim == 0 ? 3u : 6u);
    const BlockQuery query{identity.model_id, identity.format_id, block.parent,
                           block.parent,      block.id,           block.tokens};
    const auto opened = OpenBlockImage(*image, spec, query, true, "image");
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    EXPECT_TRUE(std::equal(opened->payload.begin(), opened->payload.end(),
                           block.payload.begin(), block.payload.end()));
  }
}

}  // namespace
}  // namespace hearth
