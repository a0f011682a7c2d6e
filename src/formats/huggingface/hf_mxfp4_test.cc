#include "formats/huggingface/hf_mxfp4.h"

#include <gtest/gtest.h>

#include "tensor/dequantize.h"

namespace hearth {
namespace {

SourceTensor Bytes(std::string name, std::vector<std::uint64_t> shape,
                   const std::vector<std::byte>& bytes) {
  return {std::move(name), "U8", std::nullopt, std::move(shape), bytes, {}};
}

// Codes 0..15, 0..15 in order; 2^(126 - 127).
struct Pair {
  std::vector<std::byte> blocks, scales{std::byte{126}};
  Pair() {
    for (unsigned i = 0; i < 16; ++i) {
      blocks.push_back(
          static_cast<std::byte>((2 * i) % 16 | (2 * i + 1) % 16 << 4));
    }
  }
};

TEST(HfMxfp4, APairBecomesOneTensorOfTheSameNumbers) {
  const Pair pair;
  const std::vector<std::byte> other(4);
  TensorSet tensors("m");
  ASSERT_TRUE(tensors.Add(Bytes("e_blocks", {1, 1, 1, 16}, pair.blocks)).ok());
  ASSERT_TRUE(tensors.Add(Bytes("other", {4}, other)).ok());
  ASSERT_TRUE(tensors.Add(Bytes("e_scales", {1, 1, 1}, pair.scales)).ok());
  LoadedModel model;
  ASSERT_TRUE(JoinMxfp4(tensors, model).ok());
  EXPECT_EQ(tensors.Records().size(), 2u);
  EXPECT_FALSE(tensors.Has("e_blocks") || tensors.Has("e_scales"));
  ASSERT_TRUE(tensors.Has("other"));
  EXPECT_EQ(tensors.CountParameters(), 36u);
  // The set says [n_in, n_out]; blocks are [n_out, n_in] all the same.
  const auto stack = tensors.Stack("e", 1, 1, 32, /*transposed=*/true);
  ASSERT_TRUE(stack.ok()) << stack.error().message;
  float values[32];
  DequantizeBlocks(DType::kMXFP4, stack->at(0).data, 32, values);
  const float codes[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  for (std::size_t i = 0; i < 32; ++i) {
    const float value = 0.5f * codes[i % 8];
    EXPECT_EQ(values[i], i % 16 < 8 ? value : -value) << i;
  }
}

TEST(HfMxfp4, PairsThatDoNotFitAreNamed) {
  const Pair pair;
  const auto load = [&](std::vector<std::uint64_t> shape,
                        std::vector<std::uint64_t> scales) {
    TensorSet tensors("m");
    EXPECT_TRUE(
        tensors.Add(Bytes("e_blocks", std::move(shape), pair.blocks)).ok());
    if (!scales.empty()) {
      EXPECT_TRUE(
          tensors.Add(Bytes("e_scales", std::move(scales), pair.scales)).ok());
    }
    LoadedModel model;
    return JoinMxfp4(tensors, model);
  };
  for (const auto& result :
       {load({1, 1, 1, 16}, {}), load({1, 1, 1, 16}, {1, 1}),
        load({1, 1, 2, 8}, {1, 1, 2}), load({16}, {1})}) {
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code, Code::kCorrupt);
    EXPECT_NE(result.error().message.find("e_blocks"), std::string::npos);
  }
}

}  // namespace
}  // namespace hearth
