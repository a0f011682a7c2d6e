#include "formats/gguf/gguf_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "formats/gguf/gguf.h"
#include "testing/expect_refused.h"
#include "testing/tiny_model.h"

namespace hearth {
namespace {

// A whole llama whose header `change` may alter before the tensors follow.
template <typename Change>
Result<LoadedModel> LoadChanged(std::vector<std::byte>& bytes, Change change,
                                const std::string& architecture = "llama") {
  GgufBuilder b = TinyGgufHeader(SmallestSpec(), architecture);
  change(b);
  AddTinyGgufTensors(b, SmallestSpec(), DType::kF32, architecture == "qwen2",
                     false);
  bytes = b.Build();
  return LoadGguf(bytes, "m.gguf");
}

TEST(GgufModel, EveryNumberFormatLoadsWithTheSameShapes) {
  for (const DType dtype :
       {DType::kF32, DType::kF16, DType::kBF16, DType::kQ8_0, DType::kQ4_0}) {
    const auto bytes = MakeGguf(TinySpec{}, dtype);
    const auto model = LoadGguf(bytes, "m");
    ASSERT_TRUE(model.ok()) << model.error().message;
    const WeightMatrix& v = model->weights.layers[1].v.w;
    EXPECT_EQ(v.dtype, dtype);
    EXPECT_EQ(v.layout, WeightLayout::kOutIn);
    EXPECT_EQ(v.n_out, 32);
    EXPECT_EQ(v.n_in, 64);
    EXPECT_EQ(model->weights.head.w.data, model->weights.token_embedding.data);
    EXPECT_TRUE(model->config.tied_head);
    EXPECT_EQ(model->file_format, "GGUF v3");
    EXPECT_EQ(model->config.name, "llama-2l-64d");
  }
}

TEST(GgufModel, FamiliesDifferInRotaryPairsAndBiases) {
  const auto llama_bytes = MakeGguf(TinySpec{}, DType::kF32, "llama");
  const auto llama = LoadGguf(llama_bytes, "m");
  ASSERT_TRUE(llama.ok());
  EXPECT_TRUE(llama->config.rope.interleaved);
  EXPECT_TRUE(llama->weights.layers[0].q.bias.empty());
  const auto qwen_bytes = MakeGguf(TinySpec{}, DType::kF32, "qwen2");
  const auto qwen = LoadGguf(qwen_bytes, "m");
  ASSERT_TRUE(qwen.ok()) << qwen.error().message;
  EXPECT_FALSE(qwen->config.rope.interleaved);
  EXPECT_EQ(qwen->weights.layers[0].q.bias.size(), 64u);
  EXPECT_EQ(qwen->weights.layers[0].k.bias.size(), 32u);
  EXPECT_TRUE(qwen->weights.layers[0].o.bias.empty());
}

TEST(GgufModel, Qwen2WithoutBiasesNamesTheMissingTensor) {
  GgufBuilder b = TinyGgufHeader(SmallestSpec(), "qwen2");
  AddTinyGgufTensors(b, SmallestSpec(), DType::kF32, /*qkv_bias=*/false, false);
  const auto bytes = b.Build();
  ExpectRefused(LoadGguf(bytes, "m"), Code::kCorrupt, "blk.0.attn_q.bias");
}

TEST(GgufModel, HeadOfItsOwnIsUsed) {
  const auto bytes = MakeGguf(TinySpec{}, DType::kF32, "llama", true);
  const auto model = LoadGguf(bytes, "m");
  ASSERT_TRUE(model.ok());
  EXPECT_FALSE(model->config.tied_head);
  EXPECT_NE(model->weights.head.w.data, model->weights.token_embedding.data);
}

TEST(GgufModel, UnknownArchitectureIsRefusedByName) {
  std::vector<std::byte> bytes;
  ExpectRefused(LoadChanged(
                    bytes, [](GgufBuilder&) {}, "mamba9"),
                Code::kUnsupported, "\"mamba9\"");
}

TEST(GgufModel, TensorWithoutUseIsRefusedByName) {
  std::vector<std::byte> bytes;
  ExpectRefused(LoadChanged(bytes,
                            [](GgufBuilder& b) {
                              b.Tensor("blk.0.attn_q_norm.weight", {4}, 0,
                                       std::vector<std::byte>(16));
                            }),
                Code::kUnsupported, "blk.0.attn_q_norm.weight");
}

TEST(GgufModel, UnsupportedTensorTypeIsRefusedByName) {
  GgufBuilder b = TinyGgufHeader({.layers = 1, .d_model = 256}, "llama");
  b.Tensor("token_embd.weight", {256, 256}, 15,
           std::vector<std::byte>(256 * 292));
  const auto bytes = b.Build();
  const auto model = LoadGguf(bytes, "m");
  ExpectRefused(model, Code::kUnsupported, "Q8_K");
  ExpectRefused(model, Code::kUnsupported, "token_embd.weight");
  ExpectRefused(model, Code::kUnsupported, "Q8_0");
}

TEST(GgufModel, RopeScalingIsAppliedOrRefusedByName) {
  std::vector<std::byte> bytes;
  const auto plain = LoadChanged(bytes, [](GgufBuilder&) {});
  ASSERT_TRUE(plain.ok()) << plain.error().message;
  ASSERT_EQ(plain->config.rope.inv_freq.size(), 2u);
  EXPECT_FLOAT_EQ(plain->config.rope.inv_freq[1], 0.01f);

  const auto linear = LoadChanged(bytes, [](GgufBuilder& b) {
    b.Text("llama.rope.scaling.type", "linear")
        .Float("llama.rope.scaling.factor", 4);
  });
  ASSERT_TRUE(linear.ok()) << linear.error().message;
  EXPECT_FLOAT_EQ(linear->config.rope.inv_freq[0], 0.25f);

  const auto none = LoadChanged(bytes, [](GgufBuilder& b) {
    b.Text("llama.rope.scaling.type", "none")
        .Float("llama.rope.scaling.factor", 4);
  });
  ASSERT_TRUE(none.ok()) << none.error().message;
  EXPECT_FLOAT_EQ(none->config.rope.inv_freq[0], 1.0f);

  const auto yarn = LoadChanged(bytes, [](GgufBuilder& b) {
    b.Text("llama.rope.scaling.type", "yarn")
        .Float("llama.rope.scaling.factor", 4)
        .Int("llama.rope.scaling.original_context_length", 16);
  });
  ASSERT_TRUE(yarn.ok()) << yarn.error().message;
  EXPECT_FLOAT_EQ(yarn->config.rope.cos_sin_factor,
                  0.1f * std::log(4.0f) + 1.0f);

  ExpectRefused(LoadChanged(bytes,
                            [](GgufBuilder& b) {
                              b.Text("llama.rope.scaling.type", "dynamic");
                            }),
                Code::kUnsupported, "\"dynamic\"");
}

TEST(GgufModel, RopeFactorsDivideTheFrequencies) {
  std::vector<std::byte> bytes;
  const auto with_factors = [&](float second) {
    return LoadChanged(bytes, [&](GgufBuilder& b) {
      std::vector<std::byte> factors;
      AppendLe(factors, 1.0f);
      AppendLe(factors, second);
      b.Tensor("rope_freqs.weight", {2}, 0, factors);
    });
  };
  const auto model = with_factors(8.0f);
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_FLOAT_EQ(model->config.rope.inv_freq[0], 1.0f);
  EXPECT_FLOAT_EQ(model->config.rope.inv_freq[1], 0.01f / 8);
  ExpectRefused(with_factors(0.0f), Code::kCorrupt, "rope");
  ExpectRefused(with_factors(NAN), Code::kCorrupt, "rope");
}

TEST(GgufModel, PartialRotationIsKept) {
  std::vector<std::byte> bytes;
  const auto model = LoadChanged(
      bytes, [](GgufBuilder& b) { b.Int("llama.rope.dimension_count", 2); });
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_EQ(model->config.rope.rotary_dim, 2);
  EXPECT_EQ(model->config.rope.inv_freq.size(), 1u);
}

TEST(GgufModel, KeysOfOtherForwardPassesAreRefusedByName) {
  std::vector<std::byte> bytes;
  for (const char* key :
       {"llama.expert_count", "llama.attn_logit_softcapping",
        "llama.logit_scale", "llama.final_logit_softcapping"}) {
    ExpectRefused(LoadChanged(bytes, [&](GgufBuilder& b) { b.Int(key, 8); }),
                  Code::kUnsupported, key);
  }
  ExpectRefused(LoadChanged(bytes,
                            [](GgufBuilder& b) {
                              b.Int("llama.attention.value_length", 2);
                            }),
                Code::kUnsupported, "2 numbers");
}

// The header of a llama whose head counts are an array, and its tensors.
std::vector<std::byte> WithHeadCounts(
    std::initializer_list<std::uint32_t> counts) {
  const TinySpec spec{.layers = 2, .d_model = 8, .heads = 2, .d_mlp = 12};
  GgufBuilder b;
  b.Text("general.architecture", "llama")
      .Int("llama.block_count", 2)
      .Int("llama.context_length", 32)
      .Int("llama.embedding_length", 8)
      .Int("llama.feed_forward_length", 12)
      .Array<std::uint32_t>("llama.attention.head_count", 4, counts)
      .Int("llama.attention.head_count_kv", 2);
  AddTinyGgufTensors(b, spec, DType::kF32, false, false);
  return b.Build();
}

TEST(GgufModel, OneValueForAllLayersMayBeAnArray) {
  const auto bytes = WithHeadCounts({2, 2});
  const auto model = LoadGguf(bytes, "m");
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_EQ(model->config.n_heads, 2);
}

TEST(GgufModel, ValuesThatDifferByLayerAreRefused) {
  ExpectRefused(LoadGguf(WithHeadCounts({2, 4}), "m"), Code::kUnsupported,
                "\"llama.attention.head_count\" differs from layer to layer");
  ExpectRefused(LoadGguf(WithHeadCounts({}), "m"), Code::kCorrupt,
                "llama.attention.head_count");
}

TEST(GgufModel, OuterDimensionsOfOneMeanNothing) {
  const TinySpec spec = SmallestSpec();
  GgufBuilder b = TinyGgufHeader(spec, "llama");
  for (const TinyTensor& t :
       TinyTensors(spec, kGgufNames, true, false, false)) {
    auto shape = t.shape;
    while (shape.size() < 4) shape.insert(shape.begin(), 1);
    b.Tensor(t.name, shape, 0, EncodeWeights(DType::kF32, t.values));
  }
  const auto bytes = b.Build();
  const auto model = LoadGguf(bytes, "m");
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_EQ(model->config.vocab_size, spec.vocab);
}

TEST(GgufModel, HeadsThatRotateNothingAreRefused) {
  std::vector<std::byte> bytes;
  ExpectRefused(LoadChanged(bytes,
                            [](GgufBuilder& b) {
                              b.Int("llama.rope.dimension_count", 0);
                            }),
                Code::kCorrupt, "llama.rope.dimension_count");
}

TEST(GgufModel, OtherKindsOfFilesAreNamed) {
  const struct {
    const char *key, *value, *words;
  } kinds[] = {
      {"general.type", "adapter", "LoRA adapter"},
      {"adapter.type", "lora", "LoRA adapter"},
      {"general.type", "mmproj", "vision projector"},
      {"general.type", "imatrix", "importance matrix"},
      {"general.architecture", "clip", "vision projector"},
      {"general.architecture", "nomic-bert", "embeddings"},
      {"general.architecture", "t5", "an encoder and a decoder"},
      {"general.architecture", "flux", "images"},
  };
  for (const auto& kind : kinds) {
    GgufBuilder b;
    b.Text(kind.key, kind.value);
    const std::vector<std::byte> weight(4);
    b.Tensor("w", {1}, 0, weight);
    const auto bytes = b.Build();
    ExpectRefused(LoadGguf(bytes, "m.gguf"), Code::kUnsupported, kind.words);
  }
  std::vector<std::byte> bytes;
  ExpectRefused(
      LoadChanged(bytes,
                  [](GgufBuilder& b) { b.Int("llama.pooling_type", 3); }),
      Code::kUnsupported, "embeddings");
}

TEST(GgufModel, VocabularyWithoutWeightsIsNamed) {
  GgufBuilder b = TinyGgufHeader(SmallestSpec(), "llama");
  b.Text("tokenizer.ggml.tokens", "");
  ExpectRefused(LoadGguf(b.Build(), "m.gguf"), Code::kUnsupported,
                "vocabulary without weights");
  ExpectRefused(LoadGguf(TinyGgufHeader(SmallestSpec(), "llama").Build(), "m"),
                Code::kUnsupported, "no tensors");
}

TEST(GgufModel, ShapesThatContradictEachOtherAreNamed) {
  TinySpec spec = SmallestSpec();
  GgufBuilder b = TinyGgufHeader(spec, "llama");
  spec.d_mlp = 16;
  AddTinyGgufTensors(b, spec, DType::kF32, false, false);
  const auto bytes = b.Build();
  ExpectRefused(LoadGguf(bytes, "m"), Code::kCorrupt,
                "\"blk.0.ffn_gate.weight\" has shape [16, 8], but the "
                "configuration implies [12, 8]");
}

TEST(GgufModel, FalseLayerCountNamesTheFirstMissingTensor) {
  TinySpec spec = SmallestSpec();
  spec.layers = 16000;
  GgufBuilder b = TinyGgufHeader(spec, "llama");
  AddTinyGgufTensors(b, SmallestSpec(), DType::kF32, false, false);
  const auto bytes = b.Build();
  ExpectRefused(LoadGguf(bytes, "m"), Code::kCorrupt, "blk.1.attn_norm.weight");
}

TEST(GgufModel, TokenIdsComeFromTheTokenizerKeys) {
  std::vector<std::byte> bytes;
  const auto model = LoadChanged(bytes, [](GgufBuilder& b) {
    b.Int("tokenizer.ggml.bos_token_id", 1)
        .Int("tokenizer.ggml.eos_token_id", 2)
        .Int("tokenizer.ggml.eot_token_id", 5)
        .Int("tokenizer.ggml.eom_token_id", 0xffffffff)
        .Text("general.name", "My Model: v1/x");
  });
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_EQ(model->bos_id, 1);
  EXPECT_EQ(model->eos_ids, (std::vector<std::int32_t>{2, 5}));
  EXPECT_EQ(model->config.name, "My-Model--v1-x");
  EXPECT_EQ(model->tokenizer_source, TokenizerSource::kGguf);
  EXPECT_EQ(*model->gguf->Int("tokenizer.ggml.bos_token_id"), 1);
}

TEST(GgufModel, EveryTruncationIsRefused) {
  const auto bytes = MakeGguf(SmallestSpec(), DType::kF16);
  ASSERT_TRUE(LoadGguf(bytes, "m").ok());
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    ASSERT_FALSE(LoadGguf(ByteSpan(bytes).first(n), "m").ok()) << n;
  }
}

}  // namespace
}  // namespace hearth
