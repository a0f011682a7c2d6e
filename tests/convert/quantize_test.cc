// hearth quantize: what it writes loads, is near the model, and says what it
// could not do.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "base/hash.h"
#include "convert_testing.h"
#include "formats/loader.h"
#include "hearth/convert.h"
#include "hearth/engine.h"
#include "testing/model_paths.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

TEST(Quantize, EveryTypeStaysNearTheModel) {
  const TempDir dir;
  const std::vector<float> expected = LogitsOf(kStories260K);
  const struct {
    const char* type;
    double distance;
  } cases[] = {{"Q8_0", 0.03},  {"q6_k", 0.03},   {"Q5_1", 0.1},
               {"Q5_K_M", 0.1}, {"Q4_K_M", 0.15}, {"IQ4_XS", 0.2},
               {"iq4_nl", 0.2}, {"Q4_1", 0.2},    {"Q4_0", 0.3},
               {"F16", 1e-3},   {"BF16", 0.02},   {"F32", 0}};
  for (const auto& c : cases) {
    const std::string out = dir.path() + "/m.gguf";
    const auto report =
        QuantizeModel(kStories260K, out, c.type, {.replace = true});
    ASSERT_TRUE(report.ok()) << report.error().message;
    EXPECT_LE(Distance(expected, LogitsOf(out)), c.distance) << c.type;
  }
}

// Families with other mixers than attention: what is quantised of them leaves
// the logits near, and what their memories decay by stays as it was.
TEST(Quantize, OtherMixersStayNearTheModel) {
  const TempDir dir;
  for (const char* family : {"lfm2", "qwen3_5_long"}) {
    const std::string model = kTestData + "/models/hf/" + family;
    const std::vector<float> expected = LogitsOf(model);
    for (const auto& [type, distance] :
         {std::pair{"Q8_0", 0.12}, std::pair{"Q4_K_M", 0.55}}) {
      const std::string out = dir.path() + "/m.gguf";
      const auto report = QuantizeModel(model, out, type, {.replace = true});
      ASSERT_TRUE(report.ok()) << report.error().message;
      EXPECT_LE(Distance(expected, LogitsOf(out)), distance)
          << family << " " << type;
    }
  }
}

TEST(Quantize, WhatDoesNotFitIsWrittenWiderAndListed) {
  const TempDir dir;
  const std::string out = dir.path() + "/m.gguf";
  const auto report = QuantizeModel(kStories260K, out, "Q4_K");
  ASSERT_TRUE(report.ok()) << report.error().message;
  const auto listed = [&](const std::string& text) {
    return std::any_of(report->notes.begin(), report->notes.end(),
                       [&](const std::string& note) {
                         return note.find(text) != std::string::npos;
                       });
  };
  EXPECT_TRUE(
      listed("blk.0.attn_q.weight: rows of 64 do not fit Q4_K; "
             "written as Q5_0"));
  EXPECT_TRUE(
      listed("token_embd.weight: rows of 64 do not fit Q6_K; written "
             "as Q8_0"));
  // 172 is no whole number of blocks of 32.
  EXPECT_TRUE(
      listed("blk.0.ffn_down.weight: rows of 172 do not fit Q4_K; "
             "stays"));
  const auto types = TypesOf(out);
  EXPECT_EQ(types.count("Q4_K"), 0u);
  EXPECT_GT(types.count("Q5_0"), 0u);
}

TEST(Quantize, WhatFitsIsWrittenAsTheMixtureHasIt) {
  const TempDir dir;
  const std::string out = dir.path() + "/m.gguf";
  const auto report = QuantizeModel(kTinyQ2K, out, "Q4_K");
  ASSERT_TRUE(report.ok()) << report.error().message;
  const auto types = TypesOf(out);
  EXPECT_GT(types.count("Q4_K"), 0u);
  EXPECT_GT(types.count("Q6_K"), 0u);
  EXPECT_GT(types.count("F32"), 0u);  // norms
  // Values of two and three bits come through four nearly unchanged.
  EXPECT_LT(Distance(LogitsOf(kTinyQ2K), LogitsOf(out)), 0.2);
  ASSERT_FALSE(report->notes.empty());
  EXPECT_NE(report->notes.back().find("quantised before"), std::string::npos);
}

TEST(Quantize, TheSameBytesEveryTime) {
  const TempDir dir;
  std::string first;
  for (const char* name : {"/a.gguf", "/b.gguf"}) {
    ASSERT_TRUE(QuantizeModel(kTinyQ2K, dir.path() + name, "Q4_K").ok());
    const auto bytes = ReadTextFile(dir.path() + name);
    ASSERT_TRUE(bytes.ok());
    if (first.empty()) first = *bytes;
    EXPECT_TRUE(*bytes == first);
  }
}

TEST(Quantize, RefusalsNameTheReason) {
  const TempDir dir;
  const std::string out = dir.path() + "/m.gguf";
  const auto type = QuantizeModel(kStories260K, out, "Q3_X");
  ASSERT_FALSE(type.ok());
  EXPECT_EQ(type.error().code, Code::kInvalidArgument);
  EXPECT_NE(type.error().message.find("Q3_X"), std::string::npos);
  EXPECT_NE(type.error().message.find("Q4_K_M, "), std::string::npos);
  const auto same = QuantizeModel(kStories260K, kStories260K, "Q8_0");
  ASSERT_FALSE(same.ok());
  EXPECT_EQ(same.error().code, Code::kInvalidArgument);
  ASSERT_TRUE(InitModel("tiny", dir.path() + "/t.tinygpt", 0, false, 1).ok());
  const auto bytes = ConvertModel(dir.path() + "/t.tinygpt", out);
  ASSERT_FALSE(bytes.ok());
  EXPECT_EQ(bytes.error().code, Code::kUnsupported);
  EXPECT_FALSE(StatFile(out).ok());
}

}  // namespace
}  // namespace hearth
