#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "formats/adapter/apply_adapters.h"
#include "formats/loader.h"
#include "testing/adapters.h"
#include "testing/expect_refused.h"
#include "testing/temp_dir.h"
#include "testing/tiny_model.h"

namespace hearth {
namespace {

std::vector<TinyPair> One(const std::string& hf = "model.layers.0.mlp.up_proj",
                          const std::string& gguf = "blk.0.ffn_up",
                          int n_out = 12, int n_in = 8) {
  return {MakePair(hf, gguf, n_out, n_in, 2)};
}

constexpr char kPlain[] = R"("r":2,"lora_alpha":3)";

class Adapter : public ::testing::Test {
 protected:
  LoadedModel Model(const char* architecture = "llama") {
    bytes_ = MakeGguf(SmallestSpec(), DType::kF32, architecture);
    auto model = LoadModelFromMemory(bytes_, "tiny");
    EXPECT_TRUE(model.ok()) << model.error().message;
    return std::move(*model);
  }
  Result<LoadedModel> Apply(Result<AdapterFile> file, float scale = 1) {
    HEARTH_ASSIGN(AdapterFile read, std::move(file));
    LoadedModel model = Model();
    std::vector<AdapterToApply> adapters;
    adapters.push_back({std::move(read), scale});
    HEARTH_TRY(ApplyAdapters(std::move(adapters), model));
    return model;
  }
  Result<AdapterFile> Peft(const std::vector<TinyPair>& pairs,
                           const std::string& config = kPlain) {
    EXPECT_TRUE(WritePeft(dir_.path() + "/p", pairs, config).ok());
    return ReadAdapter(dir_.path() + "/p");
  }
  Result<AdapterFile> Gguf(const GgufBuilder& builder) {
    gguf_ = builder.Build();
    return ParseGgufAdapter(gguf_, "a.gguf");
  }
  static float FactorOf(const Result<LoadedModel>& model) {
    EXPECT_TRUE(model.ok()) << model.error().message;
    if (!model.ok()) return 0;
    const auto& added = model->weights.layers[0].mlp.up.low_ranks;
    EXPECT_EQ(added.size(), 1u);
    return added.empty() ? 0 : added[0].factor;
  }

  TempDir dir_;
  std::vector<std::byte> bytes_, gguf_;
};

TEST_F(Adapter, FactorsAreAlphaByRankTimesTheScale) {
  EXPECT_EQ(FactorOf(Apply(Peft(One()))), 1.5f);
  EXPECT_EQ(FactorOf(Apply(Peft(One()), -0.5f)), -0.75f);
  EXPECT_EQ(
      FactorOf(Apply(Peft(One(), R"("r":2,"lora_alpha":3,"use_rslora":true)"))),
      static_cast<float>(3 / std::sqrt(2.0)));
}

TEST_F(Adapter, PatternsNameLayersByTheirEnds) {
  EXPECT_EQ(
      FactorOf(Apply(Peft(
          One(), R"("r":8,"lora_alpha":3,"rank_pattern":{"mlp.up_proj":2},)"
                 R"("alpha_pattern":{"down_proj":9,"p_proj":7,"up_proj":5})"))),
      2.5f);
}

TEST_F(Adapter, GgufWithoutAlphaHasTheScaleAlone) {
  EXPECT_EQ(FactorOf(Apply(Gguf(GgufAdapter(One(), "llama", 0, true)), 3)), 3);
  EXPECT_EQ(FactorOf(Apply(Gguf(GgufAdapter(One(), "llama", 8, true)), 3)), 12);
}

TEST_F(Adapter, OtherKindsArePutIntoWords) {
  const struct {
    const char* config;
    const char* words;
  } kinds[] = {
      {R"("r":2,"peft_type":"LOHA")", "\"LOHA\""},
      {R"("r":2,"use_dora":true)", "DoRA"},
      {R"("r":2,"bias":"all")", "bias = \"all\""},
      {R"("r":2,"lora_bias":true)", "biases of adapters"},
      {R"("r":2,"modules_to_save":["lm_head"])", "modules_to_save"},
      {R"("r":2,"trainable_token_indices":[1])", "embeddings"},
      {R"("r":2,"alora_invocation_tokens":[1,2])", "aLoRA"},
      {R"("r":2,"target_parameters":["experts"])", "experts"},
      {R"("r":2,"layer_replication":[[0,1]])", "layers used twice"},
      {R"("r":2,"init_lora_weights":"pissa_niter_4")", "pissa"},
      {R"("r":2,"alpha_pattern":{"^up.*":3})", "regular expression"},
  };
  for (const auto& kind : kinds) {
    ExpectRefused(Peft(One(), kind.config), Code::kUnsupported, kind.words);
    ExpectRefused(Peft(One(), kind.config), Code::kUnsupported,
                  "merge it into the model");
  }
  // What says nothing is no other kind.
  EXPECT_TRUE(Peft(One(), R"("r":2,"use_dora":false,"modules_to_save":null,)"
                          R"("bias":"none","init_lora_weights":true)")
                  .ok());
  ExpectRefused(Peft(One(), R"("r":4)"), Code::kCorrupt, "has rank 2");
  ExpectRefused(Peft(One(), R"("lora_alpha":4)"), Code::kCorrupt, "\"r\"");
}

TEST_F(Adapter, GgufFilesOfOtherKindsAreNamed) {
  GgufBuilder model;
  model.Text("general.architecture", "llama");
  ExpectRefused(Gguf(model), Code::kUnsupported, "not an adapter");
  GgufBuilder control;
  control.Text("general.type", "adapter").Text("adapter.type", "control");
  ExpectRefused(Gguf(control), Code::kUnsupported, "only lora");
  GgufBuilder late = GgufAdapter(One(), "llama", 2, true);
  late.Array<std::int32_t>("adapter.alora.invocation_tokens", 5, {1});
  ExpectRefused(Gguf(late), Code::kUnsupported, "aLoRA");
  GgufBuilder norm = GgufAdapter(One(), "llama", 2, true);
  norm.Tensor("blk.0.attn_norm.weight", {8}, 0,
              BytesOfFloats(std::vector<float>(8)));
  ExpectRefused(Gguf(norm), Code::kUnsupported, "no part of a low-rank pair");
  GgufBuilder empty = GgufAdapter({}, "llama", 2, true);
  ExpectRefused(Gguf(empty), Code::kCorrupt, "no matrices");
}

TEST_F(Adapter, QuantisedAndHalfPairsAreRefused) {
  GgufBuilder half = GgufAdapter(One(), "llama", 2, true);
  half.Tensor("blk.0.ffn_down.weight.lora_a", {2, 12}, 0,
              BytesOfFloats(std::vector<float>(24)));
  ExpectRefused(Gguf(half), Code::kCorrupt, "one of its two matrices");
  GgufBuilder quantised = GgufAdapter(One(), "llama", 2, true);
  quantised.Tensor("blk.0.ffn_down.weight.lora_a", {1, 32}, 8,
                   std::vector<std::byte>(34));
  ExpectRefused(Gguf(quantised), Code::kUnsupported, "not quantised");
}

TEST_F(Adapter, OtherModelsLayersAreNamed) {
  const struct {
    const char* hf;
    int n_out, n_in;
    Code code;
    const char* words;
  } layers[] = {
      {"model.layers.1.mlp.up_proj", 12, 8, Code::kIncompatible, "it has 1"},
      {"model.layers.0.mlp.up_proj", 16, 8, Code::kIncompatible, "16 outputs"},
      {"model.layers.0.mlp.up_proj", 12, 9, Code::kIncompatible, "9 numbers"},
      {"model.embed_tokens", 16, 8, Code::kUnsupported, "the embedding"},
      {"model.layers.0.mlp.experts.3.up_proj", 12, 8, Code::kUnsupported,
       "experts"},
      {"model.layers.0.input_layernorm", 8, 8, Code::kUnsupported,
       "no linear layer"},
      {"model.visual.blocks.0.mlp.fc1", 8, 8, Code::kUnsupported,
       "does not have"},
  };
  for (const auto& layer : layers) {
    const auto applied =
        Apply(Peft(One(layer.hf, "", layer.n_out, layer.n_in)));
    ExpectRefused(applied, layer.code, layer.words);
    ExpectRefused(applied, layer.code, std::string(layer.hf).c_str());
  }
  ExpectRefused(Apply(Gguf(GgufAdapter(One(), "qwen2", 2, true))),
                Code::kIncompatible, "\"qwen2\"");
}

TEST_F(Adapter, NamesInsideALargerModelAreItsTextPart) {
  for (const char* name :
       {"model.language_model.layers.0.mlp.up_proj",
        "language_model.model.layers.0.mlp.up_proj", "layers.0.mlp.up_proj"}) {
    EXPECT_EQ(FactorOf(Apply(Peft(One(name)))), 1.5f) << name;
  }
}

TEST_F(Adapter, ChoicesThatSayNothingAreRefused) {
  ExpectRefused(Apply(Peft(One()), 0), Code::kInvalidArgument, "leave it out");
  ExpectRefused(Apply(Peft(One()), INFINITY), Code::kInvalidArgument, "scale");
  LoadedModel model = Model();
  std::vector<AdapterToApply> twice;
  twice.push_back({*Peft(One()), 1});
  twice.push_back({*Peft(One()), 2});
  ExpectRefused(ApplyAdapters(std::move(twice), model), Code::kInvalidArgument,
                "given twice");
}

TEST_F(Adapter, WhatIsNoAdapterIsNamed) {
  const std::string dir = dir_.path() + "/x";
  std::filesystem::create_directories(dir);
  ExpectRefused(ReadAdapter(dir), Code::kNotFound, "adapter_config.json");
  WriteTextFile(dir + "/adapter_config.json", "{}");
  WriteTextFile(dir + "/adapter_model.bin", "x");
  ExpectRefused(ReadAdapter(dir), Code::kUnsupported, "PyTorch");
  ExpectRefused(ReadAdapter(dir + "/adapter_config.json"), Code::kUnsupported,
                "give the directory");
  ExpectRefused(ReadAdapter(dir + "/none"), Code::kNotFound, "none");
  WriteTextFile(dir + "/notes.gguf", "not a model at all, only words here");
  EXPECT_FALSE(ReadAdapter(dir + "/notes.gguf").ok());
}

}  // namespace
}  // namespace hearth
