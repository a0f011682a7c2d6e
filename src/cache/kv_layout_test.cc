#include "cache/kv_layout.h"

#include <gtest/gtest.h>

#include <vector>

namespace hearth {
namespace {

// Gemma 4's two head shapes, a layer of keys without values, and one whose keys
// and values differ in size and format.
KvSpec Listed() {
  KvSpec spec;
  spec.layers = {
      {.n_heads = 4, .key_dim = 256, .value_dim = 256},
      {.n_heads = 1, .key_dim = 512, .value_dim = 512},
      {.n_heads = 1, .key_dim = 576, .value_dim = 0},
      {.n_heads = 3,
       .key_dim = 7,
       .value_dim = 5,
       .key_format = KvFormat::kF16,
       .value_format = KvFormat::kF32},
  };
  return spec;
}

TEST(KvLayout, PartsOfMixedShapesFollowEachOtherOn64Bytes) {
  for (const int stride : {1, 5, 64}) {
    const KvLayout layout(Listed(), stride);
    std::size_t at = 0;
    for (const KvPart& part : layout.Parts()) {
      EXPECT_EQ(part.offset, at);
      EXPECT_EQ(part.offset % 64, 0u);
      EXPECT_GT(part.length, 0u);
      at += part.length;
    }
    EXPECT_EQ(at, layout.block_bytes());
    EXPECT_EQ(layout.Parts().size(), 7u) << "keys alone have no values";
  }
}

TEST(KvLayout, TilesOfMixedShapesLieSideBySideInsideTheirLayer) {
  const KvSpec spec = Listed();
  const KvLayout layout(spec, 64);
  for (int i = 0; i < layout.n_layers(); ++i) {
    const KvLayer& shape = spec.layer(i);
    const KvLayerLayout& layer = layout.layer(i);
    const auto key_bytes = static_cast<std::size_t>(
        shape.key_dim * KvRowBytes(shape.key_format, 64));
    const auto value_bytes = static_cast<std::size_t>(
        64 * KvRowBytes(shape.value_format, shape.value_dim));
    for (int head = 0; head < shape.n_heads; ++head) {
      const auto n = static_cast<std::size_t>(head);
      EXPECT_EQ(layer.key_tile(head), n * key_bytes);
      EXPECT_EQ(layer.value_tile(head), layer.keys_bytes() + n * value_bytes);
    }
    EXPECT_GE(layer.bytes(),
              layer.keys_bytes() +
                  static_cast<std::size_t>(shape.n_heads) * value_bytes);
  }
  const std::vector<std::byte> bytes(layout.layer(2).bytes());
  EXPECT_EQ(layout.layer(2).TileAt(bytes.data(), 0, 1).values, nullptr);
}

TEST(KvLayout, OneQuantisedLayerKeepsAllTailsInFloats) {
  KvSpec spec = Listed();
  spec.layers[1].key_format = KvFormat::kInt8;
  const KvLayout full(spec, 64), part(spec, 5);
  EXPECT_EQ(full.layer(1).key_format(), KvFormat::kInt8);
  EXPECT_EQ(full.layer(3).key_format(), KvFormat::kF16);
  for (int i = 0; i < part.n_layers(); ++i) {
    EXPECT_EQ(part.layer(i).key_format(), KvFormat::kF32);
    EXPECT_EQ(KvLayout::Tail(spec).layer(i).key_format(), KvFormat::kF32);
  }
}

TEST(KvSpec, BytesOfMixedShapesAreTheSumOfTheirLayers) {
  KvSpec spec = Listed();
  EXPECT_EQ(spec.bytes_per_token(),
            4u * 2 * 4 * 256 + 4 * 2 * 512 + 4 * 576 + 3 * (2 * 7 + 4 * 5));
  EXPECT_EQ(spec.BytesOf(70), 70 * spec.bytes_per_token());
  EXPECT_FALSE(spec.uniform().has_value());
  spec.layers.assign(2, spec.layer(0));
  EXPECT_TRUE(spec.uniform().has_value());
}

}  // namespace
}  // namespace hearth
