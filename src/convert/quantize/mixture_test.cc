#include "convert/quantize/mixture.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

constexpr MixtureFacts kTwelveLayers{.n_layers = 12};

DType Format(const char* type, const char* tensor,
             const MixtureFacts& facts = kTwelveLayers) {
  const QuantizeType* found = FindQuantizeType(type);
  EXPECT_NE(found, nullptr) << type;
  return MixtureFormat(*found, facts, tensor);
}

TEST(Mixture, TypesAreFoundInAnyCase) {
  for (const char* name : {"Q4_K_M", "q4_k_m", "Q4_k_M", "Q4_K", "q4_k"}) {
    ASSERT_NE(FindQuantizeType(name), nullptr) << name;
    EXPECT_EQ(FindQuantizeType(name)->name, "Q4_K_M");
    EXPECT_EQ(FindQuantizeType(name)->file_type, 15u);
  }
  EXPECT_EQ(FindQuantizeType("iq4_xs")->main, DType::kIQ4_XS);
  for (const char* name : {"", "Q4", "Q4_K_X", "Q1_0", "MXFP4"}) {
    EXPECT_EQ(FindQuantizeType(name), nullptr) << name;
  }
}

// The first and the last eighth of the layers and every third between.
TEST(Mixture, MediumTypesFavourSomeLayers) {
  std::string wide;
  for (int i = 0; i < 12; ++i) {
    const std::string layer = "blk." + std::to_string(i);
    const DType down = Format("Q4_K_M", (layer + ".ffn_down.weight").c_str());
    EXPECT_EQ(Format("Q4_K_M", (layer + ".attn_v.weight").c_str()), down);
    EXPECT_TRUE(down == DType::kQ4_K || down == DType::kQ6_K);
    if (down == DType::kQ6_K) wide += " " + std::to_string(i);
  }
  EXPECT_EQ(wide, " 0 3 6 9 10 11");
  EXPECT_EQ(Format("Q4_K_M", "blk.0.attn_q.weight"), DType::kQ4_K);
  EXPECT_EQ(Format("Q4_K_M", "blk.0.attn_qkv.weight"), DType::kQ6_K);
  EXPECT_EQ(Format("Q4_K_M", "blk.1.attn_qkv.weight"), DType::kQ4_K);
  EXPECT_EQ(Format("Q5_K_M", "blk.11.ffn_down_exps.weight"), DType::kQ6_K);
}

TEST(Mixture, SmallTypesWidenFewMatrices) {
  EXPECT_EQ(Format("Q4_K_S", "blk.3.attn_v.weight"), DType::kQ5_K);
  EXPECT_EQ(Format("Q4_K_S", "blk.4.attn_v.weight"), DType::kQ4_K);
  EXPECT_EQ(Format("Q4_K_S", "blk.0.ffn_down.weight"), DType::kQ5_K);
  EXPECT_EQ(Format("Q3_K_S", "blk.0.attn_v.weight"), DType::kQ3_K);
  EXPECT_EQ(Format("Q3_K_M", "blk.1.attn_v.weight"), DType::kQ5_K);
  EXPECT_EQ(Format("Q3_K_M", "blk.2.attn_v.weight"), DType::kQ4_K);
  EXPECT_EQ(Format("Q3_K_M", "blk.0.attn_output.weight"), DType::kQ4_K);
  EXPECT_EQ(Format("Q3_K_L", "blk.5.ffn_down.weight"), DType::kQ5_K);
  EXPECT_EQ(Format("Q2_K", "blk.0.attn_v.weight"), DType::kQ3_K);
  EXPECT_EQ(Format("Q2_K", "blk.0.attn_v.weight",
                   {.n_layers = 12, .heads_per_kv_head = 4}),
            DType::kQ4_K);
  EXPECT_EQ(Format("Q2_K", "blk.0.ffn_up.weight"), DType::kQ2_K);
  EXPECT_EQ(Format("IQ4_XS", "blk.0.ffn_down.weight"), DType::kQ5_K);
  EXPECT_EQ(Format("Q4_0", "blk.0.ffn_down.weight"), DType::kQ4_0);
}

TEST(Mixture, TheOutputMatrixIsWide) {
  MixtureFacts tied = kTwelveLayers;
  tied.tied_head = true;
  for (const char* type : {"Q4_K_M", "Q4_0", "Q2_K", "IQ4_NL", "Q6_K"}) {
    EXPECT_EQ(Format(type, "output.weight"), DType::kQ6_K) << type;
    EXPECT_EQ(Format(type, "token_embd.weight", tied), DType::kQ6_K) << type;
    EXPECT_EQ(Format(type, "token_embd.weight"), FindQuantizeType(type)->main);
  }
  EXPECT_EQ(Format("Q8_0", "output.weight"), DType::kQ8_0);
  EXPECT_EQ(Format("BF16", "output.weight"), DType::kBF16);
}

TEST(Mixture, ModelsThatHaveTheirOwnRules) {
  const MixtureFacts large{.n_layers = 80, .heads_per_kv_head = 8};
  EXPECT_EQ(Format("Q3_K_M", "blk.40.attn_v.weight", large), DType::kQ5_K);
  const MixtureFacts mixtral{
      .n_layers = 32, .heads_per_kv_head = 4, .n_experts = 8};
  EXPECT_EQ(Format("Q4_K_M", "blk.9.attn_v.weight", mixtral), DType::kQ8_0);
  EXPECT_EQ(Format("Q4_K_M", "blk.9.attn_k.weight", mixtral), DType::kQ8_0);
  EXPECT_EQ(Format("Q4_K_M", "blk.9.attn_output.weight", mixtral),
            DType::kQ5_K);
}

TEST(Mixture, RowsThatDoNotFitFallBack) {
  EXPECT_EQ(FormatForWidth(DType::kQ4_K, 512), DType::kQ4_K);
  EXPECT_EQ(FormatForWidth(DType::kQ2_K, 896), DType::kIQ4_NL);
  EXPECT_EQ(FormatForWidth(DType::kQ3_K, 896), DType::kIQ4_NL);
  EXPECT_EQ(FormatForWidth(DType::kIQ4_XS, 896), DType::kIQ4_NL);
  EXPECT_EQ(FormatForWidth(DType::kQ4_K, 896), DType::kQ5_0);
  EXPECT_EQ(FormatForWidth(DType::kQ5_K, 896), DType::kQ5_1);
  EXPECT_EQ(FormatForWidth(DType::kQ6_K, 896), DType::kQ8_0);
  EXPECT_EQ(FormatForWidth(DType::kQ4_0, 172), std::nullopt);
  EXPECT_EQ(FormatForWidth(DType::kF16, 172), DType::kF16);
}

TEST(Mixture, VectorsPositionsRoutersAndTapsStay) {
  EXPECT_FALSE(IsQuantised("blk.0.ffn_gate_inp_shexp.weight", 2));
  EXPECT_FALSE(IsQuantised("blk.0.ssm_conv1d.weight", 2));
  EXPECT_FALSE(IsQuantised("blk.0.shortconv.conv.weight", 2));
  EXPECT_TRUE(IsQuantised("blk.0.shortconv.in_proj.weight", 2));
  for (const char* rates : {"ssm_alpha", "ssm_beta", "ssm_ba"}) {
    const std::string name = "blk.0." + std::string(rates) + ".weight";
    EXPECT_FALSE(IsQuantised(name, 2)) << name;
  }
  EXPECT_TRUE(IsQuantised("blk.0.ssm_in.weight", 2));
  EXPECT_FALSE(IsQuantised("per_layer_model_proj.weight", 2));
  EXPECT_TRUE(IsQuantised("per_layer_token_embd.weight", 2));
  EXPECT_TRUE(IsQuantised("blk.0.attn_q.weight", 2));
  EXPECT_TRUE(IsQuantised("blk.0.ffn_down_exps.weight", 3));
  EXPECT_FALSE(IsQuantised("blk.0.attn_norm.weight", 1));
  EXPECT_FALSE(IsQuantised("blk.0.ffn_down_exps.bias", 2));
  EXPECT_FALSE(IsQuantised("blk.0.ffn_gate_inp.weight", 2));
  EXPECT_FALSE(IsQuantised("position_embd.weight", 2));
}

}  // namespace
}  // namespace hearth
