// hearth convert: what it writes in another container loads and means the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include "convert_testing.h"
#include "formats/gguf/gguf.h"
#include "formats/loader.h"
#include "hearth/convert.h"
#include "hearth/engine.h"
#include "testing/model_paths.h"
#include "testing/temp_dir.h"
#include "testing/tiny_model.h"

namespace hearth {
namespace {

TEST(BlockFormats, AWholeModelRunsInItsOwnFormats) {
  const auto types = TypesOf(kTinyQ2K);
  EXPECT_GT(types.count("Q2_K"), 0u);
  for (const float x : LogitsOf(kTinyQ2K)) ASSERT_TRUE(std::isfinite(x));
}

TEST(Convert, HuggingFaceToGgufGivesTheSameLogitsAndTokens) {
  const TempDir dir;
  for (const std::string& in : {kHfLlama, kHfQwen2}) {
    const std::string out = dir.path() + "/m.gguf";
    const auto report = ConvertModel(in, out, {.replace = true});
    ASSERT_TRUE(report.ok()) << report.error().message;
    EXPECT_TRUE(report->notes.empty());
    EXPECT_LT(Distance(LogitsOf(in), LogitsOf(out)), 1e-4) << in;
    const auto before = OpenTextCodec(in);
    const auto after = OpenTextCodec(out);
    ASSERT_TRUE(before.ok() && after.ok());
    const std::string text =
        "It's 12345 \xC3\xA9t\xC3\xA9s,  and\n\n more <|bos|>";
    EXPECT_EQ(*(*before)->Encode(text, true), *(*after)->Encode(text, true));
  }
}

TEST(Convert, GgufToGgufKeepsTensorsAndTokens) {
  const TempDir dir;
  for (const std::string& in : {kStories260K, kTinyQ2K}) {
    const std::string out = dir.path() + "/m.gguf";
    const auto report = ConvertModel(in, out, {.replace = true});
    ASSERT_TRUE(report.ok()) << report.error().message;
    EXPECT_EQ(TypesOf(in), TypesOf(out));
    EXPECT_EQ(Distance(LogitsOf(in), LogitsOf(out)), 0.0);
    const auto before = OpenTextCodec(in);
    const auto after = OpenTextCodec(out);
    ASSERT_TRUE(before.ok() && after.ok());
    EXPECT_EQ(*(*before)->Encode("Once upon a time", true),
              *(*after)->Encode("Once upon a time", true));
  }
}

TEST(Convert, GgufAndBackToHuggingFaceGivesTheSameLogitsAndTokens) {
  const TempDir dir;
  for (const std::string& in : {kHfQwen2, kTinyQ2K}) {
    const std::string gguf = dir.path() + "/m.gguf";
    const std::string out = dir.path() + "/hf" + std::to_string(in.size());
    ASSERT_TRUE(ConvertModel(in, gguf, {.replace = true}).ok());
    const auto report = ConvertModel(gguf, out);
    ASSERT_TRUE(report.ok()) << report.error().message;
    // From Q2_K to F32: activations are not rounded to int8 any more.
    const double bound = in == kTinyQ2K ? 0.05 : 1e-5;
    EXPECT_LT(Distance(LogitsOf(in), LogitsOf(out)), bound) << in;
    const auto before = OpenTextCodec(in);
    const auto after = OpenTextCodec(out);
    ASSERT_TRUE(before.ok() && after.ok());
    EXPECT_EQ(*(*before)->Encode("It's 12345, and more", true),
              *(*after)->Encode("It's 12345, and more", true));
  }
}

// Scores become merges: every text gets the ids that it got before.
TEST(Convert, SentencePieceVocabulariesComeOutOfGguf) {
  const TempDir dir;
  const std::string out = dir.path() + "/hf";
  const auto report = ConvertModel(kStories260K, out);
  ASSERT_TRUE(report.ok()) << report.error().message;
  // Rotary pairs lie in another order now, and dot products add up in it.
  EXPECT_LT(Distance(LogitsOf(kStories260K), LogitsOf(out)), 1e-5);
  const auto before = OpenTextCodec(kStories260K);
  const auto after = OpenTextCodec(out);
  ASSERT_TRUE(before.ok() && after.ok());
  for (const std::string text :
       {"Once upon a time, there was a little girl named Lily.", "", " ",
        "  two  spaces\n\nand lines", "caf\xC3\xA9 \xF0\x9F\x99\x82 <s> </s>",
        "aaaaaaaaaaaa thethethe 1234567890"}) {
    for (const bool special : {false, true}) {
      const auto ids = (*before)->Encode(text, special);
      ASSERT_TRUE(ids.ok());
      EXPECT_EQ(*(*after)->Encode(text, special), *ids) << text;
      EXPECT_EQ(*(*after)->Decode(*ids), *(*before)->Decode(*ids)) << text;
    }
  }
}

// The from-scratch models are GPT-2s with the exact GELU.
TEST(Convert, TinygptToHuggingFaceAndBack) {
  const TempDir dir;
  const std::string tiny = dir.path() + "/t.tinygpt";
  ASSERT_TRUE(InitModel("tiny", tiny, 0, false, 1).ok());
  const std::string half = dir.path() + "/h.tinygpt";
  WriteBytes(half, MakeTinygpt({.kv_heads = 4}, TinygptForm::kF16));
  const std::string bytes = "any \xC3\xA9 bytes\x01";
  for (const std::string& from : {tiny, half}) {
    const std::string hf = from + "-hf";
    const std::string back = hf + ".tinygpt";
    for (const auto& [a, b] : {std::pair(from, hf), std::pair(hf, back)}) {
      const auto report = ConvertModel(a, b);
      ASSERT_TRUE(report.ok()) << report.error().message;
      EXPECT_EQ(Distance(LogitsOf(from), LogitsOf(b)), 0.0) << b;
      const auto codec = OpenTextCodec(b);
      ASSERT_TRUE(codec.ok()) << codec.error().message;
      EXPECT_EQ((*codec)->Encode(bytes, true)->size(), bytes.size());
    }
    EXPECT_EQ(TypesOf(back), TypesOf(from)) << "fp16 stays fp16";
  }
}

TEST(Convert, WhatTinygptAndGgufCannotSayIsRefused) {
  const TempDir dir;
  ASSERT_TRUE(InitModel("tiny", dir.path() + "/t.tinygpt", 0, false, 1).ok());
  ASSERT_TRUE(InitModel("tiny", dir.path() + "/g.tinygpt", 2, false, 1).ok());
  const struct {
    std::string in, out, says;
  } cases[] = {{kHfLlama, "/x.tinygpt", "RMS norms"},
               {dir.path() + "/t.tinygpt", "/x.gguf", "exact GELU"},
               {dir.path() + "/g.tinygpt", "/x", "fewer KV heads than heads"}};
  for (const auto& c : cases) {
    const auto report = ConvertModel(c.in, dir.path() + c.out);
    ASSERT_FALSE(report.ok()) << c.out;
    EXPECT_EQ(report.error().code, Code::kUnsupported);
    EXPECT_NE(report.error().message.find(c.says), std::string::npos)
        << report.error().message;
    EXPECT_FALSE(StatFile(dir.path() + c.out).ok());
  }
}

TEST(Convert, LlamaRowsFindTheirPlaceAgain) {
  const TempDir dir;
  const std::string out = dir.path() + "/hf";
  const auto report = ConvertModel(kHfLlama, out);
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(Distance(LogitsOf(kHfLlama), LogitsOf(out)), 0.0);
}

}  // namespace
}  // namespace hearth
