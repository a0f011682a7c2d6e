#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/attention_inputs.h"

namespace hearth {
namespace {

using namespace kernels_testing;  // NOLINT: a test's own helpers

constexpr KvFormat kFormats[] = {KvFormat::kF32, KvFormat::kF16,
                                 KvFormat::kBF16};
constexpr int kHeadDims[] = {1, 2, 15, 16, 31, 64, 80, 96, 100, 128};

std::vector<int> MixedVisible(int n_rows, int n_tokens) {
  std::vector<int> visible;
  for (int r = 0; r < n_rows; ++r) {
    visible.push_back((r * 7 + n_tokens - 5) % (n_tokens + 1));
  }
  return visible;
}

TEST(Attention, EveryIsaGivesTheBitsOfScalar) {
  for (const KvFormat format : kFormats) {
    for (const int head_dim : kHeadDims) {
      for (const int stride : {16, 37, 64}) {
        TestTile tile(format, head_dim, stride);
        tile.Fill(stride - 3, 1);
        for (const int n_rows : {1, 2, 5, 7, 8, 9, 19}) {
          const auto q = RandomFloats(
              static_cast<std::size_t>(n_rows * head_dim), 99, 0.5f);
          const auto visible = MixedVisible(n_rows, stride - 3);
          State expected(n_rows, head_dim);
          Attend(*AvailableKernels()[0], q, head_dim, tile.View(), 2, visible,
                 &expected);
          for (const Kernels* kernels : AvailableKernels()) {
            State state(n_rows, head_dim);
            Attend(*kernels, q, head_dim, tile.View(), 2, visible, &state);
            ASSERT_TRUE(SameState(state, expected))
                << kernels->isa << " dim " << head_dim << " rows " << n_rows
                << ' ' << FirstDifference(state.acc, expected.acc);
          }
        }
      }
    }
  }
}

TEST(Attention, TheTileThatComesNextIsNotLookedAt) {
  constexpr int kHeadDim = 80, kStride = 37, kRows = 9;
  TestTile tile(KvFormat::kF16, kHeadDim, kStride);
  tile.Fill(kStride, 1);
  TestTile next(KvFormat::kF16, kHeadDim, kStride);  // all NaN
  TestTile other(KvFormat::kF32, kHeadDim, kStride);
  const auto q = RandomFloats(kRows * kHeadDim, 99, 0.5f);
  const auto visible = MixedVisible(kRows, kStride);
  for (const Kernels* kernels : AvailableKernels()) {
    State alone(kRows, kHeadDim), followed(kRows, kHeadDim);
    Attend(*kernels, q, kHeadDim, tile.View(), 0, visible, &alone);
    KvTile view = tile.View();
    view.Precede(other.View());
    EXPECT_EQ(view.next_keys, nullptr) << "laid out otherwise";
    view.Precede(next.View());
    ASSERT_NE(view.next_keys, nullptr);
    Attend(*kernels, q, kHeadDim, view, 0, visible, &followed);
    EXPECT_TRUE(SameState(alone, followed)) << kernels->isa;
  }
}

// Everything that a row may not see is NaN in one tile and real in the other.
TEST(Attention, ARowDependsOnNothingButWhatItSees) {
  constexpr int kStride = 64;
  for (const Kernels* kernels : AvailableKernels()) {
    for (const KvFormat format : kFormats) {
      for (const int head_dim : {20, 64}) {
        for (const int visible : {1, 15, 16, 17, 40, 63, 64}) {
          TestTile grown(format, head_dim, kStride);
          grown.Fill(kStride, 1);
          TestTile young(format, head_dim, kStride);
          young.Fill(visible, 1);
          const auto q =
              RandomFloats(static_cast<std::size_t>(9 * head_dim), 5, 0.5f);
          State among(9, head_dim);
          std::vector<int> mixed = {64, 3, 0, 64, visible, 50, 64, 1, 33};
          Attend(*kernels, q, head_dim, grown.View(), 0, mixed, &among);
          State alone(1, head_dim);
          const auto dim = static_cast<std::size_t>(head_dim);
          Attend(*kernels, std::span(q).subspan(4 * dim, dim), head_dim,
                 young.View(), 0, {visible}, &alone);
          ASSERT_EQ(alone.max[0], among.max[4]);
          ASSERT_EQ(alone.sum[0], among.sum[4]);
          ASSERT_TRUE(
              SameBits(alone.acc, std::span(among.acc).subspan(4 * dim, dim)))
              << kernels->isa << " visible " << visible;
        }
      }
    }
  }
}

TEST(Attention, TokensBeforeBeginCannotMatter) {
  for (const Kernels* kernels : AvailableKernels()) {
    for (const int begin : {1, 15, 16, 30, 47}) {
      TestTile whole(KvFormat::kF16, 64, 64);
      whole.Fill(48, 1);
      TestTile cut(KvFormat::kF16, 64, 64);
      cut.Fill(48, 1);
      const std::vector<float> nan(64, kNan);
      for (int slot = 0; slot < begin; ++slot) cut.Store(nan, nan, slot);
      const auto q = RandomFloats(64, 5, 0.5f);
      State a(1, 64);
      State b(1, 64);
      Attend(*kernels, q, 64, whole.View(), begin, {48}, &a);
      Attend(*kernels, q, 64, cut.View(), begin, {48}, &b);
      ASSERT_TRUE(SameState(a, b)) << kernels->isa << ' ' << begin;
      ASSERT_FALSE(std::isnan(a.sum[0]));
    }
  }
}

// Sliding windows: neighbours begin and end at different slots, some with
// nothing in common.
TEST(Attention, ARowWithABeginOfItsOwnIsTheSameAlone) {
  const std::vector<int> begin = {0, 3, 17, 40, 41, 0, 60, 5, 64, 2, 33};
  const std::vector<int> visible = {9, 12, 64, 42, 64, 64, 64, 3, 64, 50, 34};
  const auto n_rows = static_cast<int>(begin.size());
  for (const Kernels* kernels : AvailableKernels()) {
    for (const KvFormat format : kFormats) {
      for (const int head_dim : {20, 64}) {
        TestTile tile(format, head_dim, 64);
        tile.Fill(64, 1);
        const auto dim = static_cast<std::size_t>(head_dim);
        const auto q = RandomFloats(begin.size() * dim, 5, 0.5f);
        State among(n_rows, head_dim);
        Attend(*kernels, q, head_dim, tile.View(), begin, visible, &among);
        ASSERT_TRUE(SameAlone(*kernels, q, head_dim, tile.View(), begin,
                              visible, among));
      }
    }
  }
}

TEST(Attention, SoftcapBendsEveryScore) {
  constexpr int kDim = 32;
  constexpr float kCap = 5.0f;
  TestTile tile(KvFormat::kF32, kDim, 48);
  tile.Fill(48, 7);
  const auto q = RandomFloats(kDim, 5, 1.5f);
  double sum = 0;
  std::vector<double> expected(kDim, 0.0);
  for (int t = 10; t < 48; ++t) {
    double score = 0;
    for (int d = 0; d < kDim; ++d) {
      score += double{q[static_cast<std::size_t>(d)]} * tile.Key(d, t);
    }
    const double weight = std::exp(kCap * std::tanh(score / kCap));
    sum += weight;
    for (int d = 0; d < kDim; ++d) {
      expected[static_cast<std::size_t>(d)] += weight * tile.Value(t, d);
    }
  }
  State first(1, kDim);
  for (const Kernels* kernels : AvailableKernels()) {
    State state(1, kDim);
    Attend(*kernels, q, kDim, tile.View(), std::vector<int>{10}, {48}, &state,
           kCap);
    std::vector<float> out(kDim);
    kernels->finish_attention(state.sum[0], state.acc.data(), kDim, out.data());
    for (std::size_t d = 0; d < kDim; ++d) {
      ASSERT_NEAR(out[d], expected[d] / sum, 3e-6) << kernels->isa;
    }
    if (kernels == AvailableKernels()[0]) first = state;
    EXPECT_TRUE(SameState(state, first)) << kernels->isa;
  }
}

TEST(Attention, ARowThatSeesNothingKeepsItsState) {
  for (const Kernels* kernels : AvailableKernels()) {
    TestTile tile(KvFormat::kF32, 24, 32);
    const auto q = RandomFloats(2 * 24, 5);
    State state(2, 24);
    State before = state;
    Attend(*kernels, q, 24, tile.View(), 7, {7, 0}, &state);
    EXPECT_TRUE(SameState(state, before)) << kernels->isa;
    float out[24];
    kernels->finish_attention(state.sum[0], state.acc.data(), 24, out);
    for (const float v : out) EXPECT_EQ(v, 0.0f);
  }
}

// Several tiles against a softmax in double precision. Scores reach about 30,
// where half an ulp of a float score is 1e-6 of its weight.
TEST(Attention, MatchesASoftmaxInDoublePrecision) {
  constexpr int kDim = 72;
  constexpr int kTiles = 5;
  for (const Kernels* kernels : AvailableKernels()) {
    for (const KvFormat format : kFormats) {
      const auto q = RandomFloats(kDim, 5, 0.8f);
      State state(1, kDim);
      std::vector<double> score;
      std::vector<std::vector<double>> value;
      for (int i = 0; i < kTiles; ++i) {
        TestTile tile(format, kDim, 48);
        const int n = i == kTiles - 1 ? 21 : 48;
        tile.Fill(n, 1000u * static_cast<unsigned>(i));
        Attend(*kernels, q, kDim, tile.View(), 0, {n}, &state);
        for (int t = 0; t < n; ++t) {
          double s = 0;
          value.emplace_back();
          for (int d = 0; d < kDim; ++d) {
            s += double{q[static_cast<std::size_t>(d)]} * tile.Key(d, t);
            value.back().push_back(tile.Value(t, d));
          }
          score.push_back(s);
        }
      }
      double largest = -1e300;
      for (const double s : score) largest = std::max(largest, s);
      double sum = 0;
      for (const double s : score) sum += std::exp(s - largest);
      std::vector<float> out(kDim);
      kernels->finish_attention(state.sum[0], state.acc.data(), kDim,
                                out.data());
      for (std::size_t d = 0; d < kDim; ++d) {
        double expected = 0;
        for (std::size_t t = 0; t < score.size(); ++t) {
          expected += std::exp(score[t] - largest) / sum * value[t][d];
        }
        ASSERT_NEAR(out[d], expected, 5e-6) << kernels->isa;
      }
    }
  }
}

TEST(Attention, MergedPartsGiveTheWhole) {
  constexpr int kDim = 40;
  TestTile tile(KvFormat::kF32, kDim, 64);
  tile.Fill(64, 3);
  const auto q = RandomFloats(kDim, 5, 0.7f);
  std::vector<State> merged;
  for (const Kernels* kernels : AvailableKernels()) {
    State whole(1, kDim);
    Attend(*kernels, q, kDim, tile.View(), 0, {64}, &whole);
    State a(1, kDim);
    State b(1, kDim);
    State empty(1, kDim);
    Attend(*kernels, q, kDim, tile.View(), 0, {29}, &a);
    Attend(*kernels, q, kDim, tile.View(), 29, {64}, &b);
    const State first = a;
    const auto merge = [kernels](State* into, const State& from) {
      kernels->merge_attention(into->max.data(), into->sum.data(),
                               into->acc.data(), from.max[0], from.sum[0],
                               from.acc.data(), kDim);
    };
    merge(&a, empty);
    EXPECT_TRUE(SameState(a, first)) << "an empty part changes nothing";
    merge(&empty, first);
    EXPECT_TRUE(SameState(empty, first)) << "a first part is taken as it is";
    merge(&a, b);
    for (std::size_t d = 0; d < kDim; ++d) {
      EXPECT_NEAR(a.acc[d] / a.sum[0], whole.acc[d] / whole.sum[0], 1e-6);
    }
    merged.push_back(a);
    EXPECT_TRUE(SameState(a, merged[0])) << kernels->isa;
  }
}

TEST(Attention, StoredTokensAreTheSameBytesOnEveryIsa) {
  auto row = RandomFloats(37, 8, 100.0f);
  row[3] = kNan;
  row[4] = 1e9f;
  row[5] = 1e-7f;
  row[6] = -std::numeric_limits<float>::infinity();
  for (const KvFormat format : kFormats) {
    const auto bytes = static_cast<std::size_t>(37 * 5 * KvRowBytes(format, 1));
    std::vector<std::vector<std::byte>> stored;
    for (const Kernels* kernels : AvailableKernels()) {
      std::vector<std::byte> keys(bytes);
      std::vector<std::byte> values(bytes);
      kernels->store_key(format, row.data(), 37, keys.data(), 5, 3);
      kernels->store_value(format, row.data(), 37, values.data(), 3);
      const auto width = static_cast<std::size_t>(KvRowBytes(format, 1));
      for (std::size_t d = 0; d < 37; ++d) {
        for (std::size_t i = 0; i < width; ++i) {
          ASSERT_EQ(keys[(d * 5 + 3) * width + i],
                    values[(3 * 37 + d) * width + i]);
        }
      }
      stored.push_back(keys);
      EXPECT_EQ(keys, stored[0]) << kernels->isa;
    }
  }
}

}  // namespace
}  // namespace hearth
