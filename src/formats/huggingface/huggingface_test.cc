#include "formats/huggingface/huggingface.h"

#include <gtest/gtest.h>

#include <string>

#include "formats/huggingface/huggingface_testing.h"
#include "formats/loader.h"
#include "hearth_test_paths.h"
#include "testing/expect_refused.h"

namespace hearth {
namespace {

std::vector<float> Frequencies(std::string_view rope) {
  const auto json = ParseJson(TinyHfConfig({.d_model = 256, .heads = 4}, rope),
                              "config.json");
  const auto config = ReadHuggingFaceConfig(*json, "config.json");
  EXPECT_TRUE(config.ok()) << config.error().message;
  return config.ok() ? config->config.rope.inv_freq : std::vector<float>();
}

TEST(HuggingFace, LlamaFixtureLoads) {
  const auto model =
      LoadModel(std::string(HEARTH_TEST_DATA "/models/hf/llama"));
  ASSERT_TRUE(model.ok()) << model.error().message;
  const ModelConfig& c = model->config;
  EXPECT_EQ(c.architecture, "llama");
  EXPECT_EQ(c.name, "llama-4l-64d");
  EXPECT_EQ(c.n_layers, 4);
  EXPECT_EQ(c.n_heads, 8);
  EXPECT_EQ(c.n_kv_heads, 2);
  EXPECT_EQ(c.head_dim, 8);
  EXPECT_EQ(c.d_mlp, 160);
  EXPECT_EQ(c.vocab_size, 384);
  EXPECT_EQ(c.context_length, 512);
  EXPECT_FALSE(c.tied_head);
  EXPECT_FALSE(c.rope.interleaved);
  ASSERT_EQ(c.rope.inv_freq.size(), 4u);
  EXPECT_FLOAT_EQ(c.rope.inv_freq[0], 1.0f);
  EXPECT_EQ(model->weights.layers[3].mlp.down.w.dtype, DType::kBF16);
  EXPECT_EQ(model->bos_id, 0);
  EXPECT_EQ(model->eos_ids, std::vector<std::int32_t>{1});
  EXPECT_EQ(model->tokenizer_source, TokenizerSource::kDirectory);
  EXPECT_FALSE(model->tokenizer_dir.empty());
}

TEST(HuggingFace, Qwen2FixtureLoads) {
  const auto model =
      LoadModel(std::string(HEARTH_TEST_DATA "/models/hf/qwen2"));
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_EQ(model->config.architecture, "qwen2");
  EXPECT_EQ(model->config.n_kv_heads, 1);
  EXPECT_EQ(model->config.head_dim, 16);
  EXPECT_TRUE(model->config.tied_head);
  EXPECT_FLOAT_EQ(model->config.norm_eps, 1e-6f);
  EXPECT_EQ(model->weights.layers[0].q.bias.size(), 112u);
  EXPECT_TRUE(model->weights.layers[0].o.bias.empty());
}

TEST(HuggingFace, BothStylesOfRopeSettingsMeanTheSame) {
  const std::vector<float> old_style = Frequencies(
      R"(,"rope_theta":500000.0,"rope_scaling":{"rope_type":"llama3",
      "factor":8.0,"low_freq_factor":1.0,"high_freq_factor":4.0,
      "original_max_position_embeddings":64})");
  const std::vector<float> new_style = Frequencies(
      R"(,"rope_parameters":{"rope_theta":500000.0,"rope_type":"llama3",
      "factor":8.0,"low_freq_factor":1.0,"high_freq_factor":4.0,
      "original_max_position_embeddings":64})");
  EXPECT_EQ(old_style, new_style);
  EXPECT_EQ(old_style.size(), 32u);
  EXPECT_EQ(Frequencies(R"(,"rope_scaling":{"type":"linear","factor":2})"),
            Frequencies(R"(,"rope_parameters":{"rope_type":"linear","factor":2,
                        "rope_theta":10000})"));
}

TEST(HuggingFace, RopeTypesAreRefusedByName) {
  const auto tensors = LlamaTensors(true);
  for (const char* type : {"dynamic", "mrope"}) {
    ExpectRefused(
        LoadTiny(std::string(R"(,"rope_scaling":{"factor":2,"type":")") + type +
                     "\"}",
                 tensors),
        Code::kUnsupported, type);
  }
  ExpectRefused(
      LoadTiny(R"(,"rope_parameters":{"full_attention":{}})", tensors),
      Code::kUnsupported, "full_attention");
  ExpectRefused(LoadTiny(R"(,"rope_scaling":{"type":"linear"})", tensors),
                Code::kCorrupt, "factor");
  ExpectRefused(LoadTiny(R"(,"partial_rotary_factor":0.5)", tensors),
                Code::kUnsupported, "partial_rotary_factor");
}

TEST(HuggingFace, UntiedModelMustHaveAHead) {
  ExpectRefused(
      LoadTiny(R"(,"tie_word_embeddings":false)", LlamaTensors(false)),
      Code::kCorrupt, "tie_word_embeddings");
  EXPECT_TRUE(
      LoadTiny(R"(,"tie_word_embeddings":false)", LlamaTensors(true)).ok());
}

TEST(HuggingFace, TiedHeadMayBeACopyAndNothingElse) {
  constexpr char kTied[] = R"(,"tie_word_embeddings":true)";
  EXPECT_TRUE(LoadTiny(kTied, LlamaTensors(false)).ok());
  auto tensors = LlamaTensors(true);
  ExpectRefused(LoadTiny(kTied, tensors), Code::kCorrupt, "lm_head.weight");
  tensors.back().values = tensors.front().values;
  const auto model = LoadTiny(kTied, tensors);
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_EQ(model->weights.head.w.data, model->weights.token_embedding.data);
}

TEST(HuggingFace, LlamaBiasesFollowTheFlags) {
  auto tensors = LlamaTensors(true);
  const std::string layer = "model.layers.0.";
  const struct {
    const char* name;
    std::uint64_t n;
  } biases[] = {{"self_attn.q_proj.bias", 8}, {"self_attn.k_proj.bias", 4},
                {"self_attn.v_proj.bias", 4}, {"self_attn.o_proj.bias", 8},
                {"mlp.gate_proj.bias", 12},   {"mlp.up_proj.bias", 12},
                {"mlp.down_proj.bias", 8}};
  for (const auto& b : biases) {
    tensors.push_back(MakeTensor(layer + b.name, {b.n}, 1));
  }
  const auto model =
      LoadTiny(R"(,"attention_bias":true,"mlp_bias":true)", tensors);
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_EQ(model->weights.layers[0].o.bias.size(), 8u);
  EXPECT_EQ(model->weights.layers[0].mlp.gate.bias.size(), 12u);
  ExpectRefused(LoadTiny(R"(,"attention_bias":true)", tensors),
                Code::kUnsupported, "mlp.gate_proj.bias");
  ExpectRefused(LoadTiny(R"(,"attention_bias":true)", LlamaTensors(true)),
                Code::kCorrupt, "q_proj.bias");
}

TEST(HuggingFace, UnknownAndMissingTensorsAreNamed) {
  auto tensors = LlamaTensors(true);
  tensors.push_back(
      MakeTensor("model.layers.0.self_attn.q_norm.weight", {4}, 1));
  ExpectRefused(LoadTiny("", tensors), Code::kUnsupported, "q_norm.weight");
  tensors.pop_back();
  tensors.erase(tensors.begin() + 3);
  ExpectRefused(LoadTiny("", tensors), Code::kCorrupt, "q_proj.weight");
}

TEST(HuggingFace, SettingsWithoutCodeAreRefusedByName) {
  const auto tensors = LlamaTensors(true);
  ExpectRefused(LoadTiny(R"(,"hidden_act":"gelu")", tensors),
                Code::kUnsupported, "gelu");
  ExpectRefused(LoadTiny(R"(,"quantization_config":{"bits":4})", tensors),
                Code::kUnsupported, "quantization_config");
  ExpectRefused(LoadTiny(R"(,"architectures":["GemmaForCausalLM"])", tensors),
                Code::kUnsupported, "GemmaForCausalLM");
  constexpr char kQwen[] = R"(,"architectures":["Qwen2ForCausalLM"])";
  ExpectRefused(
      LoadTiny(std::string(kQwen) + R"(,"layer_types":["chunked_attention"])",
               tensors),
      Code::kUnsupported, "chunked_attention");
  ExpectRefused(
      LoadTiny(std::string(kQwen) + R"(,"layer_types":["sliding_attention"])",
               tensors),
      Code::kCorrupt, "sliding_window");
}

}  // namespace
}  // namespace hearth
