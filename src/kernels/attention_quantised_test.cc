// Attention over quantised tiles, and what sealing makes of the numbers.
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/attention_inputs.h"

namespace hearth {
namespace {

using namespace kernels_testing;  // NOLINT: a test's own helpers

constexpr Formats kQuantised[] = {{KvFormat::kInt8, KvFormat::kInt8},
                                  {KvFormat::kInt4, KvFormat::kInt4},
                                  {KvFormat::kInt8, KvFormat::kInt4},
                                  {KvFormat::kInt4, KvFormat::kF16},
                                  {KvFormat::kBF16, KvFormat::kInt8}};

TEST(Attention, QuantisedTilesGiveTheSameBitsOnEveryIsaAndAlone) {
  const std::vector<int> begin = {0, 3, 17, 40, 41, 0, 60, 5, 64, 2, 33};
  const std::vector<int> visible = {9, 12, 64, 42, 64, 64, 64, 3, 64, 50, 34};
  const auto n_rows = static_cast<int>(begin.size());
  for (const Formats& formats : kQuantised) {
    for (const int head_dim : {1, 12, 16, 20, 64, 80, 96, 128, 256}) {
      TestTile tile(formats, head_dim, 64);
      tile.Fill(64, 1);
      const auto dim = static_cast<std::size_t>(head_dim);
      const auto q = RandomFloats(begin.size() * dim, 5, 0.5f);
      State expected(n_rows, head_dim);
      Attend(*AvailableKernels()[0], q, head_dim, tile.View(), begin, visible,
             &expected);
      for (const Kernels* kernels : AvailableKernels()) {
        State among(n_rows, head_dim);
        const KvTile view = tile.View(*kernels);
        Attend(*kernels, q, head_dim, view, begin, visible, &among);
        ASSERT_TRUE(SameState(among, expected))
            << kernels->isa << ' ' << formats << " dim " << head_dim;
        ASSERT_TRUE(
            SameAlone(*kernels, q, head_dim, view, begin, visible, among));
      }
    }
  }
}

// The folded scales against the dequantised numbers in double precision.
TEST(Attention, QuantisedTilesAreReadAsTheirDequantisedNumbers) {
  constexpr int kDim = 72;
  for (const Formats& formats : kQuantised) {
    TestTile tile(formats, kDim, 48);
    tile.Fill(48, 7);
    const auto q = RandomFloats(kDim, 5, 0.8f);
    const KvTile view = tile.View();
    double sum = 0;
    std::vector<double> expected(kDim, 0.0);
    for (int t = 10; t < 48; ++t) {
      double score = 0;
      for (int d = 0; d < kDim; ++d) {
        score += double{q[static_cast<std::size_t>(d)]} * tile.Key(d, t);
      }
      const double weight = std::exp(score);
      sum += weight;
      for (int d = 0; d < kDim; ++d) {
        expected[static_cast<std::size_t>(d)] += weight * tile.Value(t, d);
      }
    }
    State state(1, kDim);
    Attend(*AvailableKernels()[0], q, kDim, view, 10, {48}, &state);
    for (std::size_t d = 0; d < kDim; ++d) {
      ASSERT_NEAR(state.acc[d] / state.sum[0], expected[d] / sum, 5e-6)
          << formats;
    }
  }
}

// Channels with a large constant part and others that hardly move.
TEST(Attention, AQuantisedNumberIsWithinHalfAScale) {
  for (const Formats& formats : kQuantised) {
    TestTile tile(formats, 33, 64);
    for (int t = 0; t < 64; ++t) {
      auto key = RandomFloats(33, static_cast<unsigned>(t));
      auto value = RandomFloats(33, static_cast<unsigned>(t) + 500);
      key[3] = key[3] * 0.01f + 117.3f;
      key[4] = -250.0f - key[4];
      key[5] = 1e-6f * key[5];
      key[6] = 2.5f;
      key[7] = 0.0f;
      value[0] = 60000.0f;
      if (t == 9) value.assign(33, -3.7f);
      tile.Store(key, value, t);
    }
    (void)tile.View();
    const auto scale_at = [](const std::byte* params, int row) {
      return double{ToFloat(F16{LoadLe<std::uint16_t>(params + 2 * row)})};
    };
    for (int t = 0; t < 64; ++t) {
      for (int d = 0; d < 33; ++d) {
        if (IsQuantised(formats.keys)) {
          const double scale = scale_at(tile.KeyParams(), d);
          ASSERT_NEAR(tile.Key(d, t), tile.FloatKey(d, t), 0.5001 * scale)
              << formats << " channel " << d;
          ASSERT_LE(scale, d == 6 ? 0.01 : 300.0);
        }
        if (IsQuantised(formats.values)) {
          ASSERT_NEAR(tile.Value(t, d), tile.FloatValue(t, d),
                      0.5001 * scale_at(tile.ValueParams(), t))
              << formats << " token " << t;
        }
      }
    }
  }
}

TEST(Attention, WhatCannotBeQuantisedShows) {
  for (const float bad : {kNan, 1e9f, -1e9f, -kNothing}) {
    TestTile tile(Formats{KvFormat::kInt8, KvFormat::kInt4}, 16, 16);
    tile.Fill(16, 1);
    std::vector<float> key(16, 0.5f);
    key[2] = bad;
    tile.Store(key, std::vector<float>(16, 1.0f), 3);
    const auto q = RandomFloats(16, 5);
    State state(1, 16);
    Attend(*AvailableKernels()[0], q, 16, tile.View(), 0, {16}, &state);
    EXPECT_TRUE(std::isnan(state.acc[0])) << bad;
  }
}

TEST(Attention, SealedRowsAreTheSameBytesOnEveryIsa) {
  for (const Formats& formats : kQuantised) {
    TestTile tile(formats, 37, 48);
    tile.Fill(48, 3);
    (void)tile.View();
    const auto expected = tile.Bytes();
    for (const Kernels* kernels : AvailableKernels()) {
      (void)tile.View(*kernels);
      EXPECT_EQ(tile.Bytes(), expected) << kernels->isa << ' ' << formats;
    }
  }
}

// Of layers whose values are a part of their keys.
TEST(KeysAsValues, AreTheStoredNumbersOfEachToken) {
  for (const Formats& formats : {Formats{KvFormat::kF32, KvFormat::kF32},
                                 Formats{KvFormat::kF16, KvFormat::kF16},
                                 kQuantised[0], kQuantised[1]}) {
    for (const int head_dim : {1, 16, 20, 40}) {
      TestTile tile(formats, head_dim, 48);
      tile.Fill(formats.quantised() ? 48 : 37, 3);
      for (const Kernels* kernels : AvailableKernels()) {
        const KvTile view = tile.View(*kernels);
        std::vector<float> values(
            static_cast<std::size_t>(view.n_tokens * head_dim));
        kernels->keys_as_values(view, head_dim, values.data());
        for (int t = 0; t < view.n_tokens; ++t) {
          for (int d = 0; d < head_dim; ++d) {
            ASSERT_EQ(values[static_cast<std::size_t>(t * head_dim + d)],
                      static_cast<float>(tile.Key(d, t)))
                << kernels->isa << ' ' << formats;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace hearth
