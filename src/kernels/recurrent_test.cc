#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/kernels.h"

namespace hearth {
namespace {

std::vector<float> Random(std::size_t n, unsigned seed, float low, float high) {
  std::mt19937 rng(seed);
  std::uniform_real_distribution<float> draw(low, high);
  std::vector<float> x(n);
  for (float& v : x) v = draw(rng);
  return x;
}

// One head's tokens, q, k and v side by side as a delta net has them.
struct Inputs {
  int n, key_dim, value_dim;
  std::vector<float> rows, decay, rate, before;

  Inputs(int n_tokens, int d_k, int d_v, unsigned seed)
      : n(n_tokens),
        key_dim(d_k),
        value_dim(d_v),
        rows(Random(Size(n * (2 * d_k + d_v)), seed, -0.3f, 0.3f)),
        decay(Random(Size(n), seed + 1, 0.5f, 1.0f)),
        rate(Random(Size(n), seed + 2, 0.0f, 1.0f)),
        before(Random(Size(d_k * d_v), seed + 3, -1.0f, 1.0f)) {}
  static std::size_t Size(int i) { return static_cast<std::size_t>(i); }
  int width() const { return 2 * key_dim + value_dim; }

  DeltaTokens Tokens(int first, int count, float* out) const {
    const float* row = rows.data() + first * width();
    return {.n = count,
            .q = row,
            .k = row + key_dim,
            .qk_stride = width(),
            .v = row + 2 * key_dim,
            .v_stride = width(),
            .decay = decay.data() + first,
            .rate = rate.data() + first,
            .gate_stride = 1,
            .out = out + first * value_dim,
            .out_stride = value_dim};
  }
};

struct Outcome {
  std::vector<float> out, state;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

// In steps of at most `step` tokens.
Outcome Advance(const Kernels& kernels, const Inputs& in, int step) {
  Outcome got{std::vector<float>(Inputs::Size(in.n * in.value_dim)), in.before};
  for (int at = 0; at < in.n; at += step) {
    std::vector<float> after(got.state.size());
    kernels.delta_update(
        got.state.data(), after.data(), in.key_dim, in.value_dim,
        in.Tokens(at, std::min(step, in.n - at), got.out.data()));
    got.state = after;
  }
  return got;
}

// The rule in double precision, matrix by matrix.
std::vector<double> Reference(const Inputs& in) {
  std::vector<double> s(in.before.begin(), in.before.end()), out;
  for (int t = 0; t < in.n; ++t) {
    const float* q = in.rows.data() + t * in.width();
    const float *k = q + in.key_dim, *v = k + in.key_dim;
    const auto i_t = Inputs::Size(t);
    for (double& x : s) x *= double{in.decay[i_t]};
    for (int j = 0; j < in.value_dim; ++j) {
      double recalled = 0, result = 0;
      const auto at = [&](int i) -> double& {
        return s[Inputs::Size(i * in.value_dim + j)];
      };
      for (int i = 0; i < in.key_dim; ++i) recalled += at(i) * double{k[i]};
      const double d = double{in.rate[i_t]} * (double{v[j]} - recalled);
      for (int i = 0; i < in.key_dim; ++i) {
        at(i) += double{k[i]} * d;
        result += at(i) * double{q[i]};
      }
      out.push_back(result);
    }
  }
  return out;
}

// Value sizes around the sixteen columns of a vector and the two of a strip.
constexpr int kValueDims[] = {1, 15, 16, 24, 32, 47, 128};

TEST(DeltaUpdate, FollowsTheRule) {
  for (const int value_dim : kValueDims) {
    const Inputs in(9, 20, value_dim, 7);
    const std::vector<double> want = Reference(in);
    for (const Kernels* kernels : AvailableKernels()) {
      const Outcome got = Advance(*kernels, in, in.n);
      for (std::size_t i = 0; i < want.size(); ++i) {
        ASSERT_NEAR(double{got.out[i]}, want[i], 2e-5) << kernels->isa;
      }
    }
  }
}

TEST(DeltaUpdate, EveryInstructionSetAndCutGivesTheSameBits) {
  for (const int value_dim : kValueDims) {
    const Inputs in(23, 32, value_dim, 11);
    const Outcome want = Advance(*AvailableKernels()[0], in, in.n);
    for (const Kernels* kernels : AvailableKernels()) {
      for (const int step : {1, 5, in.n}) {
        EXPECT_EQ(Advance(*kernels, in, step), want)
            << kernels->isa << ", steps of " << step;
      }
    }
  }
}

TEST(DeltaUpdate, TheStateMayBeUpdatedInPlace) {
  const Inputs in(6, 16, 40, 3);
  for (const Kernels* kernels : AvailableKernels()) {
    const Outcome want = Advance(*kernels, in, in.n);
    Outcome got{std::vector<float>(want.out.size()), in.before};
    kernels->delta_update(got.state.data(), got.state.data(), in.key_dim,
                          in.value_dim, in.Tokens(0, in.n, got.out.data()));
    EXPECT_EQ(got, want) << kernels->isa;
  }
}

// One head's tokens: what is written and read, then the input.
struct SsmInputs {
  int n, n_state, head_dim;
  std::vector<float> rows, decay, before;

  SsmInputs(int n_tokens, int states, int dim, unsigned seed)
      : n(n_tokens),
        n_state(states),
        head_dim(dim),
        rows(Random(Inputs::Size(n * width()), seed, -0.5f, 0.5f)),
        decay(Random(Inputs::Size(n), seed + 1, 0.5f, 1.0f)),
        before(Random(Inputs::Size(states * dim), seed + 2, -1.0f, 1.0f)) {}
  int width() const { return 2 * n_state + head_dim; }

  SsmTokens Tokens(int first, int count, float* out) const {
    const float* row = rows.data() + first * width();
    return {.n = count,
            .x = row + 2 * n_state,
            .x_stride = width(),
            .write = row,
            .read = row + n_state,
            .state_stride = width(),
            .decay = decay.data() + first,
            .decay_stride = 1,
            .out = out + first * head_dim,
            .out_stride = head_dim};
  }
};

Outcome Advance(const Kernels& kernels, const SsmInputs& in, int step) {
  Outcome got{std::vector<float>(Inputs::Size(in.n * in.head_dim)), in.before};
  for (int at = 0; at < in.n; at += step) {
    std::vector<float> after(got.state.size());
    kernels.ssm_update(
        got.state.data(), after.data(), in.n_state, in.head_dim,
        in.Tokens(at, std::min(step, in.n - at), got.out.data()));
    got.state = after;
  }
  return got;
}

TEST(SsmUpdate, FollowsTheRule) {
  for (const int head_dim : kValueDims) {
    const SsmInputs in(9, 20, head_dim, 5);
    std::vector<double> s(in.before.begin(), in.before.end()), want;
    for (int t = 0; t < in.n; ++t) {
      const float* write = in.rows.data() + t * in.width();
      const float *read = write + in.n_state, *x = read + in.n_state;
      for (int j = 0; j < head_dim; ++j) {
        double result = 0;
        for (int i = 0; i < in.n_state; ++i) {
          double& state = s[Inputs::Size(i * head_dim + j)];
          state = state * double{in.decay[Inputs::Size(t)]} +
                  double{write[i]} * double{x[j]};
          result += state * double{read[i]};
        }
        want.push_back(result);
      }
    }
    for (const Kernels* kernels : AvailableKernels()) {
      const Outcome got = Advance(*kernels, in, in.n);
      for (std::size_t i = 0; i < want.size(); ++i) {
        ASSERT_NEAR(double{got.out[i]}, want[i], 2e-5) << kernels->isa;
      }
    }
  }
}

TEST(SsmUpdate, EveryInstructionSetAndCutGivesTheSameBits) {
  for (const int head_dim : {1, 15, 16, 64, 80}) {
    const SsmInputs in(23, 16, head_dim, 11);
    const Outcome want = Advance(*AvailableKernels()[0], in, in.n);
    for (const Kernels* kernels : AvailableKernels()) {
      for (const int step : {1, 5, in.n}) {
        EXPECT_EQ(Advance(*kernels, in, step), want)
            << kernels->isa << ", steps of " << step;
      }
    }
  }
}

TEST(ReluSquared, KeepsWhatIsPositiveAndNaNs) {
  const std::vector<float> x = {-2, 0, 3, NAN, 0.5f};
  for (const Kernels* kernels : AvailableKernels()) {
    std::vector<float> y(x.size());
    kernels->relu_squared(x.data(), static_cast<std::int64_t>(x.size()),
                          y.data());
    EXPECT_EQ(y[0], 0);
    EXPECT_EQ(y[2], 9);
    EXPECT_TRUE(std::isnan(y[3])) << kernels->isa;
    EXPECT_EQ(y[4], 0.25f);
  }
}

TEST(ConvRow, SumsItsTapsInOrderOnEveryInstructionSet) {
  for (const int n : {1, 16, 37}) {
    const std::vector<float> taps = Random(Inputs::Size(4 * n), 1, -1, 1);
    const std::vector<float> rows = Random(Inputs::Size(4 * n), 2, -1, 1);
    const float* inputs[] = {rows.data() + 2 * n, rows.data(),
                             rows.data() + 3 * n, rows.data() + n};
    std::vector<float> want(Inputs::Size(n));
    for (int c = 0; c < n; ++c) {
      float sum = 0;
      for (int t = 0; t < 4; ++t) {
        sum = std::fma(taps[Inputs::Size(t * n + c)], inputs[t][c], sum);
      }
      want[Inputs::Size(c)] = sum;
    }
    for (const Kernels* kernels : AvailableKernels()) {
      std::vector<float> got(want.size());
      kernels->conv_row(taps.data(), 4, inputs, n, got.data());
      EXPECT_EQ(got, want) << kernels->isa;
    }
  }
}

}  // namespace
}  // namespace hearth
