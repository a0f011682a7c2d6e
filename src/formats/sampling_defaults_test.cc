#include "formats/sampling_defaults.h"

#include <gtest/gtest.h>

#include "formats/gguf/gguf.h"
#include "formats/gguf/gguf_model.h"
#include "formats/huggingface/huggingface.h"
#include "testing/expect_refused.h"
#include "testing/temp_dir.h"
#include "testing/tiny_model.h"

namespace hearth {
namespace {

Result<SamplingDefaults> FromJson(const std::string& text) {
  return ReadGenerationConfig(ParseJson(text, "g.json").value(), "g.json", 100);
}

Result<SamplingDefaults> FromGguf(GgufBuilder builder) {
  const auto bytes = builder.Build();
  return ReadGgufSampling(GgufFile::Parse(bytes, "m.gguf").value());
}

TEST(SamplingDefaults, GenerationConfigIsRead) {
  const auto read = FromJson(
      R"({"temperature":0.6,"top_k":20,"top_p":0.95,"min_p":0,
          "repetition_penalty":1.05,"suppress_tokens":[7,99,100,-1]})");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(*read, (SamplingDefaults{.temperature = 0.6,
                                     .top_k = 20,
                                     .top_p = 0.95,
                                     .min_p = 0.0,
                                     .repetition_penalty = 1.05,
                                     .suppressed_ids = {7, 99}}));
}

TEST(SamplingDefaults, WhatIsNotSaidStaysEmpty) {
  EXPECT_EQ(FromJson("{}").value(), SamplingDefaults());
  EXPECT_EQ(FromJson(R"({"temperature":null,"top_k":null})").value(),
            SamplingDefaults());
  EXPECT_EQ(FromGguf(GgufBuilder()).value(), SamplingDefaults());
}

TEST(SamplingDefaults, NotToSampleIsGreedy) {
  EXPECT_EQ(FromJson(R"({"do_sample":false,"temperature":0.6})")->temperature,
            0.0);
  EXPECT_EQ(FromJson(R"({"do_sample":true})")->temperature, std::nullopt);
}

TEST(SamplingDefaults, BelowZeroTurnsTopKOff) {
  EXPECT_EQ(FromJson(R"({"top_k":-1})")->top_k, 0);
}

TEST(SamplingDefaults, ImpossibleValuesAreRefusedByName) {
  for (const char* key :
       {"temperature", "top_p", "min_p", "repetition_penalty"}) {
    const std::string member = std::string("{\"") + key + "\":";
    ExpectRefused(FromJson(member + "-0.5}"), Code::kCorrupt, key);
    ExpectRefused(FromJson(member + "\"hot\"}"), Code::kCorrupt, key);
  }
  ExpectRefused(FromJson(R"({"top_p":1.5})"), Code::kCorrupt, "top_p");
  ExpectRefused(FromJson(R"({"repetition_penalty":0})"), Code::kCorrupt,
                "repetition_penalty");
  ExpectRefused(FromJson(R"({"top_k":"all"})"), Code::kCorrupt, "top_k");
  ExpectRefused(FromJson(R"({"suppress_tokens":["a"]})"), Code::kCorrupt,
                "suppress_tokens");
  GgufBuilder hot;
  hot.Float("general.sampling.temp", -1.0f);
  ExpectRefused(FromGguf(hot), Code::kCorrupt, "general.sampling.temp");
}

TEST(SamplingDefaults, GgufKeysAreRead) {
  GgufBuilder b = TinyGgufHeader(SmallestSpec(), "llama");
  b.Float("general.sampling.temp", 0.5f)
      .Int("general.sampling.top_k", 64)
      .Float("general.sampling.top_p", 0.25f)
      .Float("general.sampling.min_p", 0.125f)
      .Float("general.sampling.penalty_repeat", 1.5f)
      .Int("general.sampling.penalty_last_n", 128);
  AddTinyGgufTensors(b, SmallestSpec(), DType::kF32, false, false);
  const auto bytes = b.Build();
  const auto model = LoadGguf(bytes, "m.gguf");
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_EQ(model->sampling, (SamplingDefaults{.temperature = 0.5,
                                               .top_k = 64,
                                               .top_p = 0.25,
                                               .min_p = 0.125,
                                               .repetition_penalty = 1.5,
                                               .repetition_tokens = 128}));
}

TEST(SamplingDefaults, GenerationConfigBesideAModelIsRead) {
  const TempDir dir;
  const auto tensors =
      TinyTensors(SmallestSpec(), kHuggingFaceNames, true, false, true);
  WriteTextFile(dir.path() + "/config.json", TinyHfConfig(SmallestSpec()));
  ASSERT_TRUE(WriteTinySafetensors(dir.path() + "/model.safetensors", tensors,
                                   DType::kF32)
                  .ok());
  WriteTextFile(dir.path() + "/generation_config.json",
                R"({"temperature":0.7,"suppress_tokens":[3,16],
                    "eos_token_id":[4,5]})");
  const auto model = LoadHuggingFace(dir.path());
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_EQ(model->sampling,
            (SamplingDefaults{.temperature = 0.7, .suppressed_ids = {3}}));
  EXPECT_EQ(model->eos_ids, (std::vector<std::int32_t>{4, 5}));
}

}  // namespace
}  // namespace hearth
