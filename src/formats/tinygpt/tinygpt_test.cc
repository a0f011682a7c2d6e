#include "formats/tinygpt/tinygpt.h"

#include <gtest/gtest.h>

#include <string>

#include "formats/tensors/tensor_set.h"
#include "testing/tiny_model.h"

namespace hearth {
namespace {

constexpr TinygptForm kForms[] = {TinygptForm::kTrainingF32, TinygptForm::kF32,
                                  TinygptForm::kF16, TinygptForm::kInt4};

std::string ErrorOf(ByteSpan bytes, Code code) {
  const auto model = LoadTinygpt(bytes, "m.tinygpt");
  EXPECT_FALSE(model.ok());
  if (model.ok()) return "";
  EXPECT_EQ(model.error().code, code) << model.error().message;
  return model.error().message;
}

// The value that y = W x multiplies input k by for output n.
float WeightAt(const WeightMatrix& w, std::int64_t n, std::int64_t k) {
  const bool in_out = w.layout == WeightLayout::kInOut;
  const auto i =
      static_cast<std::size_t>(in_out ? k * w.n_out + n : n * w.n_in + k);
  const auto count = static_cast<std::size_t>(w.n_out * w.n_in);
  return WidenToFloat(w.dtype, {w.data, count * 4}, {w.scales, count},
                      count)[i];
}

TEST(Tinygpt, EveryFormGivesTheWeightsInTheRightPlaces) {
  const TinySpec spec;
  const std::vector<TinyTensor> tensors =
      TinyTensors(spec, kTinygptNames, false, true, false);
  const auto value = [&](const char* name, std::size_t i) {
    for (const TinyTensor& t : tensors) {
      if (t.name == name) return t.values[i];
    }
    return -99.0f;
  };
  for (const TinygptForm form : kForms) {
    const auto bytes = MakeTinygpt(spec, form);
    const auto model = LoadTinygpt(bytes, "m");
    ASSERT_TRUE(model.ok()) << model.error().message;
    const float tolerance = form == TinygptForm::kInt4 ? 0.03f : 1e-4f;
    const Weights& w = model->weights;
    const WeightMatrix& k = w.layers[1].k.w;
    EXPECT_EQ(k.layout, WeightLayout::kInOut);
    EXPECT_EQ(k.n_out, 32);
    EXPECT_EQ(k.n_in, 64);
    EXPECT_NEAR(WeightAt(k, 5, 33),
                value("blocks.1.attn.k_proj.weight", 5 * 64 + 33), tolerance);
    EXPECT_EQ(w.token_embedding.layout, WeightLayout::kOutIn);
    EXPECT_NEAR(WeightAt(w.token_embedding, 7, 9),
                value("token_embedding.weight", 7 * 64 + 9), tolerance);
    EXPECT_EQ(w.head.w.data, w.token_embedding.data);
    EXPECT_NEAR(w.position_embedding[3 * 64 + 1],
                value("position_embedding.weight", 3 * 64 + 1), tolerance);
    EXPECT_NEAR(w.layers[0].mlp.down.bias[2],
                value("blocks.0.mlp.fc_out.bias", 2), tolerance);
    EXPECT_NEAR(w.final_norm.bias[63], value("ln_final.bias", 63), tolerance);
  }
}

TEST(Tinygpt, ConfigurationIsThatOfTheFromScratchModel) {
  const auto bytes = MakeTinygpt(TinySpec{}, TinygptForm::kF16);
  const auto model = LoadTinygpt(bytes, "m");
  ASSERT_TRUE(model.ok()) << model.error().message;
  const ModelConfig& c = model->config;
  EXPECT_EQ(c.architecture, "gpt");
  EXPECT_EQ(c.name, "gpt-2l-64d");
  EXPECT_EQ(c.n_kv_heads, 2);
  EXPECT_EQ(c.head_dim, 16);
  EXPECT_EQ(c.norm, NormKind::kLayerNorm);
  EXPECT_EQ(c.mlp, MlpKind::kGeluErf);
  EXPECT_TRUE(c.learned_positions);
  EXPECT_TRUE(c.tied_head);
  EXPECT_EQ(c.rope.rotary_dim, 0);
  EXPECT_FLOAT_EQ(c.attention_scale, 0.25f);
  EXPECT_EQ(model->tokenizer_source, TokenizerSource::kBytes);
  EXPECT_EQ(model->file_format, ".tinygpt v2 fp16");
}

TEST(Tinygpt, TrainingFileCountsNoOptimizerState) {
  const auto training = MakeTinygpt(SmallestSpec(), TinygptForm::kTrainingF32);
  const auto plain = MakeTinygpt(SmallestSpec(), TinygptForm::kF32);
  EXPECT_EQ(LoadTinygpt(training, "m")->n_parameters,
            LoadTinygpt(plain, "m")->n_parameters);
}

TEST(Tinygpt, OldVersionIsRefusedWithAReason) {
  const auto bytes = JoinTinygpt("{}", {}, 1);
  EXPECT_NE(ErrorOf(bytes, Code::kUnsupported).find("version 1"),
            std::string::npos);
}

TEST(Tinygpt, FlagsThatChangeTheForwardPassAreRefusedByName) {
  for (const char* flag :
       {"\"useALiBi\":true", "\"useMoD\":true",
        "\"useDifferentialAttention\":true", "\"useDeepNorm\":true",
        "\"useEmbeddingRMSNorm\":true", "\"nExperts\":4", "\"qatBits\":4"}) {
    const auto bytes =
        MakeTinygpt(SmallestSpec(), TinygptForm::kF16, std::string(",") + flag);
    const std::string name(flag + 1, std::string_view(flag).find("\":") - 1);
    EXPECT_NE(ErrorOf(bytes, Code::kUnsupported).find(name), std::string::npos);
  }
}

TEST(Tinygpt, FlagsThatAreOffOrUnknownAreIgnored) {
  const auto bytes = MakeTinygpt(
      SmallestSpec(), TinygptForm::kF16,
      ",\"useMoD\":false,\"slidingWindow\":null,\"kviBits\":8,\"x\":[1,{}]");
  EXPECT_TRUE(LoadTinygpt(bytes, "m").ok());
}

// A wrong type must never turn into a default (the training program's reader
// does that and then loads a model of other shapes).
TEST(Tinygpt, MistypedConfigIsAnError) {
  const auto bytes =
      MakeTinygpt(SmallestSpec(), TinygptForm::kF16, ",\"layers\":\"many\"");
  EXPECT_NE(ErrorOf(bytes, Code::kCorrupt).find("layers"), std::string::npos);
}

constexpr char kConfig[] =
    R"({"config":{"layers":1,"dModel":4,"heads":2,"ctx":2,"vocabSize":2},)";

TEST(Tinygpt, MissingFloatOffsetIsRefused) {
  const auto bytes = JoinTinygpt(
      std::string(kConfig) +
          R"("weightDtype":"fp16","manifest":[{"name":"a","shape":[2]}]})",
      std::vector<std::byte>(4));
  EXPECT_NE(ErrorOf(bytes, Code::kCorrupt).find("floatOffset"),
            std::string::npos);
}

TEST(Tinygpt, OverlapsAreRefused) {
  const auto bytes =
      JoinTinygpt(std::string(kConfig) + R"("weightDtype":"fp16","manifest":[
          {"name":"a","shape":[2],"floatOffset":0},
          {"name":"b","shape":[2],"floatOffset":1}]})",
                  std::vector<std::byte>(6));
  EXPECT_NE(ErrorOf(bytes, Code::kCorrupt).find("overlap"), std::string::npos);
}

TEST(Tinygpt, ImpossibleShapesAreRefused) {
  for (const char* shape : {"[0]", "[-1]", "[1.5]", "[4294967296,4294967296]",
                            "[72057594037927936]", "[\"a\"]"}) {
    const auto bytes = JoinTinygpt(std::string(kConfig) +
                                       R"("manifest":[{"name":"a","shape":)" +
                                       shape + R"(,"floatOffset":0}]})",
                                   std::vector<std::byte>(24));
    ErrorOf(bytes, Code::kCorrupt);
  }
}

TEST(Tinygpt, BodyOfAnotherLengthIsRefused) {
  for (const TinygptForm form : kForms) {
    auto bytes = MakeTinygpt(SmallestSpec(), form);
    bytes.push_back(std::byte{0});
    EXPECT_NE(ErrorOf(bytes, Code::kCorrupt).find("body"), std::string::npos);
  }
}

TEST(Tinygpt, ShapeThatContradictsTheConfigurationNamesBoth) {
  auto bytes = MakeTinygpt(SmallestSpec(), TinygptForm::kF16);
  // Same length of text, so that nothing moves: d_mlp 12 becomes 13.
  std::string text(AsText(bytes));
  text.replace(text.find("\"dMlp\":12"), 9, "\"dMlp\":13");
  const std::string message = ErrorOf(AsBytes(text), Code::kCorrupt);
  EXPECT_NE(message.find("[12, 8]"), std::string::npos) << message;
  EXPECT_NE(message.find("[13, 8]"), std::string::npos) << message;
}

TEST(Tinygpt, EosByteBecomesAnEosId) {
  std::string text(AsText(MakeTinygpt(SmallestSpec(), TinygptForm::kF16)));
  // Replaced by as many bytes, so that the header keeps its length.
  const std::string old = "\"includesOptimizerState\":false";
  std::string with_eos = "\"eosByte\":10";
  with_eos.append(old.size() - with_eos.size(), ' ');
  text.replace(text.find(old), old.size(), with_eos);
  const auto model = LoadTinygpt(AsBytes(text), "m");
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_EQ(model->eos_ids, std::vector<std::int32_t>{10});
}

TEST(Tinygpt, EveryTruncationIsRefused) {
  for (const TinygptForm form : kForms) {
    const auto bytes = MakeTinygpt(SmallestSpec(), form);
    ASSERT_TRUE(LoadTinygpt(bytes, "m").ok());
    for (std::size_t n = 0; n < bytes.size(); ++n) {
      ASSERT_FALSE(LoadTinygpt(ByteSpan(bytes).first(n), "m").ok()) << n;
    }
  }
}

}  // namespace
}  // namespace hearth
