#include "model/layer_plan.h"

#include <gtest/gtest.h>

#include <vector>

namespace hearth {
namespace {

LoadedModel SixLayers() {
  LoadedModel model;
  model.config.n_layers = 6;
  model.config.n_heads = 8;
  model.config.n_kv_heads = 4;
  model.config.head_dim = 16;
  model.weights.layers.resize(6);
  return model;
}

TEST(LayerPlan, ALayerThatSaysNothingHasTheModelsShape) {
  const LoadedModel model = SixLayers();
  EXPECT_EQ(model.config.n_kv_layers(), 6);
  EXPECT_EQ(model.config.FirstLayerWithoutKv(), 6);
  const auto plans = PlanLayers(model);
  ASSERT_EQ(plans.size(), 6u);
  for (int i = 0; i < 6; ++i) {
    const LayerPlan& plan = plans[static_cast<std::size_t>(i)];
    EXPECT_EQ(plan.index, i);
    EXPECT_EQ(plan.kv_layer, i);
    EXPECT_TRUE(plan.owns_kv);
    EXPECT_EQ(plan.qkv_dim(), 128 + 2 * 64);
    EXPECT_EQ(plan.group(), 2);
  }
}

TEST(LayerPlan, LayersThatMixOtherwiseOwnStatesAndNoKeysAndValues) {
  LoadedModel model = SixLayers();
  ModelConfig& c = model.config;
  c.d_model = 40;
  c.conv_taps = 4;
  c.delta_net = {.n_key_heads = 2,
                 .n_value_heads = 4,
                 .key_dim = 8,
                 .value_dim = 6,
                 .tiled = false};
  c.layer_kinds.resize(6);
  c.layer_kinds[0].mixer = Mixer::kDeltaNet;
  c.layer_kinds[2].mixer = Mixer::kShortConv;
  c.layer_kinds[5].mixer = Mixer::kDeltaNet;
  EXPECT_EQ(c.n_kv_layers(), 3);
  EXPECT_EQ(c.FirstLayerWithoutKv(), 6) << "the last layer remembers, too";
  const auto plans = PlanLayers(model);
  EXPECT_FALSE(plans[0].owns_kv);
  EXPECT_EQ(plans[1].kv_layer, 0);
  EXPECT_EQ(plans[3].kv_layer, 1);
  EXPECT_EQ(plans[2].first_state, 2);
  EXPECT_EQ(plans[5].first_state, 3);
  EXPECT_EQ(c.StatesOf(0)[0].dims, (std::vector<int>{4, 8, 6}));
  EXPECT_EQ(c.StatesOf(0)[1].dims, (std::vector<int>{3, 2 * 2 * 8 + 4 * 6}));
  EXPECT_EQ(c.StatesOf(2)[0].dims, (std::vector<int>{3, 40}));
}

TEST(LayerPlan, AValueHeadReadsTheKeyHeadOfItsPlace) {
  DeltaNetShape shape{.n_key_heads = 2,
                      .n_value_heads = 6,
                      .key_dim = 8,
                      .value_dim = 8,
                      .tiled = false};
  EXPECT_EQ(shape.KeyHeadOf(2), 0);
  EXPECT_EQ(shape.KeyHeadOf(3), 1);
  shape.tiled = true;
  EXPECT_EQ(shape.KeyHeadOf(2), 0);
  EXPECT_EQ(shape.KeyHeadOf(3), 1);
  EXPECT_EQ(shape.KeyHeadOf(1), 1);
}

TEST(LayerPlan, LayersBehindAnAnchorOwnNoKeysAndValues) {
  LoadedModel model = SixLayers();
  model.config.kv_anchor = 2;
  EXPECT_EQ(model.config.n_kv_layers(), 3);
  EXPECT_EQ(model.config.FirstLayerWithoutKv(), 3);
  const auto plans = PlanLayers(model);
  EXPECT_TRUE(plans[2].owns_kv);
  EXPECT_FALSE(plans[3].owns_kv);
  EXPECT_EQ(plans[5].kv_layer, 2);
}

// Two kinds of layers, the last of each kind shared by what follows: owners
// are counted without gaps, whatever lies between them.
TEST(LayerPlan, EachLayerHasItsOwnShapeAndSource) {
  LoadedModel model = SixLayers();
  const LayerKind wide{.n_kv_heads = 1, .head_dim = 32};
  model.config.layer_kinds = {LayerKind{},
                              wide,
                              LayerKind{.kv_source = 0},
                              LayerKind{},
                              LayerKind{.kv_source = 3},
                              LayerKind{.head_dim = 32, .kv_source = 1}};
  model.config.layer_kinds[5].n_kv_heads = 1;
  EXPECT_EQ(model.config.n_kv_layers(), 3);
  EXPECT_EQ(model.config.FirstLayerWithoutKv(), 4);
  const auto plans = PlanLayers(model);
  const std::vector<int> kv_layers = {0, 1, 0, 2, 2, 1};
  for (std::size_t i = 0; i < plans.size(); ++i) {
    EXPECT_EQ(plans[i].kv_layer, kv_layers[i]) << i;
    EXPECT_EQ(plans[i].owns_kv, i == 0 || i == 1 || i == 3) << i;
  }
  EXPECT_EQ(plans[1].q_dim(), 256);
  EXPECT_EQ(plans[1].kv_dim(), 32);
  EXPECT_EQ(plans[5].group(), 8);
  EXPECT_EQ(plans[0].kv_dim(), 64);
}

}  // namespace
}  // namespace hearth
