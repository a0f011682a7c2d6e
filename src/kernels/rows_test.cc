#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "kernels/test_inputs.h"

namespace hearth {
namespace {

using namespace kernels_testing;  // NOLINT: a test's own helpers

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// From -inf to inf, denser near zero, with every kind of special value.
std::vector<float> Sweep() {
  std::vector<float> x = {0.0f,
                          -0.0f,
                          kInfinity,
                          -kInfinity,
                          kNan,
                          std::numeric_limits<float>::denorm_min(),
                          std::numeric_limits<float>::max(),
                          std::numeric_limits<float>::lowest()};
  for (float v = -100.0f; v < 100.0f; v += 0.0371f) x.push_back(v);
  for (float v = -3.0f; v < 3.0f; v += 0.00191f) x.push_back(v);
  return x;
}

using Unary = std::function<void(const Kernels&, const float* x, std::int64_t n,
                                 float* out)>;

struct NamedUnary {
  const char* name;
  Unary run;
};

const std::vector<float>& Ones() {
  static const std::vector<float> kOnes(20000, 1.0f);
  return kOnes;
}

const NamedUnary kUnaries[] = {
    {"silu_mul", [](const Kernels& k, const float* x, std::int64_t n,
                    float* out) { k.silu_mul(x, Ones().data(), n, out); }},
    {"gelu_erf", [](const Kernels& k, const float* x, std::int64_t n,
                    float* out) { k.gelu_erf(x, n, out); }},
    {"gelu_tanh", [](const Kernels& k, const float* x, std::int64_t n,
                     float* out) { k.gelu_tanh(x, n, out); }},
    {"softcap",
     [](const Kernels& k, const float* x, std::int64_t n, float* out) {
       std::copy_n(x, n, out);
       k.softcap(30.0f, n, out);
     }},
    {"add",
     [](const Kernels& k, const float* x, std::int64_t n, float* out) {
       std::fill(out, out + n, 0.37f);
       k.add(x, n, out);
     }},
    {"rms_norm", [](const Kernels& k, const float* x, std::int64_t n,
                    float* out) { k.rms_norm(x, x, 1e-5f, n, out); }},
    {"layer_norm",
     [](const Kernels& k, const float* x, std::int64_t n, float* out) {
       k.layer_norm(x, x, Ones().data(), 1e-5f, n, out);
     }},
    {"silu", [](const Kernels& k, const float* x, std::int64_t n,
                float* out) { k.silu(x, n, out); }},
    {"sigmoid_mul",
     [](const Kernels& k, const float* x, std::int64_t n, float* out) {
       std::fill(out, out + n, 0.37f);
       k.sigmoid_mul(x, n, out);
     }},
};

TEST(Rows, EveryIsaGivesTheBitsOfScalar) {
  for (const NamedUnary& unary : kUnaries) {
    for (const std::size_t n : {1, 3, 15, 16, 17, 31, 33, 100, 896, 1000}) {
      const auto x = RandomFloats(n, static_cast<unsigned>(n), 2.0f);
      std::vector<float> expected(n);
      unary.run(*AvailableKernels()[0], x.data(), static_cast<std::int64_t>(n),
                expected.data());
      for (const Kernels* kernels : AvailableKernels()) {
        std::vector<float> out(n + 1, 7.0f);
        unary.run(*kernels, x.data(), static_cast<std::int64_t>(n), out.data());
        EXPECT_EQ(out.back(), 7.0f) << "wrote beyond the end";
        out.pop_back();
        ASSERT_TRUE(SameBits(out, expected))
            << unary.name << ' ' << kernels->isa << ' ' << n << ' '
            << FirstDifference(out, expected);
      }
    }
  }
}

TEST(Rows, EveryIsaAgreesOnSpecialValues) {
  const auto x = Sweep();
  const auto n = static_cast<std::int64_t>(x.size());
  for (const NamedUnary& unary : std::span(kUnaries).first(4)) {
    std::vector<float> expected(x.size());
    unary.run(*AvailableKernels()[0], x.data(), n, expected.data());
    for (const Kernels* kernels : AvailableKernels()) {
      std::vector<float> out(x.size());
      unary.run(*kernels, x.data(), n, out.data());
      ASSERT_TRUE(SameBits(out, expected)) << unary.name << ' ' << kernels->isa;
    }
  }
}

// Tolerances: relative to the result or to 1, whichever is larger.
void ExpectNear(const char* name, const Unary& run, double (*reference)(double),
                double tolerance) {
  const auto x = Sweep();
  std::vector<float> out(x.size());
  run(ActiveKernels(), x.data(), static_cast<std::int64_t>(x.size()),
      out.data());
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!std::isfinite(x[i])) continue;
    const double expected = reference(x[i]);
    ASSERT_NEAR(out[i], expected, tolerance * std::max(1.0, std::abs(expected)))
        << name << '(' << x[i] << ')';
  }
}

TEST(Rows, SiluIsAccurate) {
  ExpectNear(
      "silu", kUnaries[0].run, [](double x) { return x / (1 + std::exp(-x)); },
      1.5e-7);
}

TEST(Rows, GeluErfIsAccurate) {
  ExpectNear(
      "gelu", kUnaries[1].run,
      [](double x) { return x / 2 * std::erfc(-x / std::sqrt(2.0)); }, 2e-7);
}

TEST(Rows, GeluTanhIsAccurate) {
  ExpectNear(
      "gelu", kUnaries[2].run,
      [](double x) {
        const double u = std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
        return x / (1 + std::exp(-2 * u));
      },
      4e-7);
}

TEST(Rows, ActivationsOfZeroAreZero) {
  const float x[2] = {0.0f, -0.0f};
  for (const Kernels* kernels : AvailableKernels()) {
    for (const NamedUnary& unary : std::span(kUnaries).first(3)) {
      float out[2] = {1.0f, 1.0f};
      unary.run(*kernels, x, 2, out);
      EXPECT_EQ(out[0], 0.0f) << unary.name;
      EXPECT_EQ(out[1], 0.0f) << unary.name;
    }
  }
}

TEST(Rows, NormsFollowTheirDefinition) {
  const std::size_t n = 901;
  const auto x = RandomFloats(n, 1, 3.0f);
  const auto weight = RandomFloats(n, 2);
  const auto bias = RandomFloats(n, 3);
  double mean = 0;
  double squares = 0;
  for (const float v : x) mean += v / static_cast<double>(n);
  double variance = 0;
  for (const float v : x) {
    squares += double{v} * v / static_cast<double>(n);
    variance += (v - mean) * (v - mean) / static_cast<double>(n);
  }
  std::vector<float> rms(n);
  std::vector<float> layer(n);
  std::vector<float> no_bias(n);
  const Kernels& k = ActiveKernels();
  k.rms_norm(x.data(), weight.data(), 1e-5f, n, rms.data());
  k.layer_norm(x.data(), weight.data(), bias.data(), 1e-5f, n, layer.data());
  k.layer_norm(x.data(), weight.data(), nullptr, 1e-5f, n, no_bias.data());
  for (std::size_t i = 0; i < n; ++i) {
    const double normal = (x[i] - mean) / std::sqrt(variance + 1e-5);
    ASSERT_NEAR(rms[i], x[i] / std::sqrt(squares + 1e-5) * weight[i], 2e-6);
    ASSERT_NEAR(layer[i], normal * weight[i] + bias[i], 4e-6);
    ASSERT_NEAR(no_bias[i], normal * weight[i], 4e-6);
  }
}

TEST(Rows, NormsMayWorkInPlace) {
  const auto x = RandomFloats(70, 4);
  const auto weight = RandomFloats(70, 5);
  for (const Kernels* kernels : AvailableKernels()) {
    std::vector<float> out(70);
    std::vector<float> in_place = x;
    kernels->rms_norm(x.data(), weight.data(), 1e-6f, 70, out.data());
    kernels->rms_norm(in_place.data(), weight.data(), 1e-6f, 70,
                      in_place.data());
    EXPECT_TRUE(SameBits(out, in_place)) << kernels->isa;
  }
}

TEST(Rows, RopeRotatesPairsAndLeavesTheRest) {
  for (const bool interleaved : {false, true}) {
    for (const int rotary_dim : {2, 6, 32, 34, 64, 128}) {
      const auto size = static_cast<std::size_t>(rotary_dim);
      const auto head = RandomFloats(size + 3, 6);
      std::vector<float> cos(size / 2);
      std::vector<float> sin(size / 2);
      for (std::size_t i = 0; i < size / 2; ++i) {
        cos[i] = std::cos(static_cast<float>(i) * 0.7f);
        sin[i] = std::sin(static_cast<float>(i) * 0.7f);
      }
      auto expected = head;
      AvailableKernels()[0]->rope(expected.data(), rotary_dim, cos.data(),
                                  sin.data(), interleaved);
      for (std::size_t i = 0; i < size / 2; ++i) {
        const std::size_t a = interleaved ? 2 * i : i;
        const std::size_t b = interleaved ? 2 * i + 1 : i + size / 2;
        EXPECT_NEAR(expected[a], head[a] * cos[i] - head[b] * sin[i], 1e-6);
        EXPECT_NEAR(expected[b], head[a] * sin[i] + head[b] * cos[i], 1e-6);
      }
      for (const Kernels* kernels : AvailableKernels()) {
        auto rotated = head;
        kernels->rope(rotated.data(), rotary_dim, cos.data(), sin.data(),
                      interleaved);
        ASSERT_TRUE(SameBits(rotated, expected)) << kernels->isa;
        EXPECT_EQ(rotated[size], head[size]);
      }
    }
  }
}

TEST(Rows, ArgMaxTakesTheFirstLargest) {
  for (const Kernels* kernels : AvailableKernels()) {
    std::vector<float> x(77, -2.0f);
    x[33] = 1.0f;
    x[50] = 1.0f;
    x[76] = 1.0f;
    EXPECT_EQ(kernels->argmax(x.data(), 77), 33) << kernels->isa;
    x[76] = 1.5f;
    EXPECT_EQ(kernels->argmax(x.data(), 77), 76) << kernels->isa;
    EXPECT_EQ(kernels->argmax(x.data(), 1), 0) << kernels->isa;
  }
}

TEST(Rows, ArgMaxNeverTakesANan) {
  for (const Kernels* kernels : AvailableKernels()) {
    std::vector<float> x(40, kNan);
    EXPECT_EQ(kernels->argmax(x.data(), 40), 0) << kernels->isa;
    x[21] = -kInfinity;
    EXPECT_EQ(kernels->argmax(x.data(), 40), 21) << kernels->isa;
    x[39] = -1e30f;
    EXPECT_EQ(kernels->argmax(x.data(), 40), 39) << kernels->isa;
    x[2] = kInfinity;
    EXPECT_EQ(kernels->argmax(x.data(), 40), 2) << kernels->isa;
  }
}

TEST(Rows, AllFiniteFindsOneNumberThatIsNone) {
  for (const Kernels* kernels : AvailableKernels()) {
    for (const std::int64_t n : {1, 15, 16, 17, 40}) {
      std::vector<float> x(static_cast<std::size_t>(n), -3.0e38f);
      EXPECT_TRUE(kernels->all_finite(x.data(), n)) << kernels->isa;
      for (std::int64_t i = 0; i < n; ++i) {
        for (const float bad : {kNan, kInfinity, -kInfinity}) {
          std::vector<float> with = x;
          with[static_cast<std::size_t>(i)] = bad;
          EXPECT_FALSE(kernels->all_finite(with.data(), n))
              << kernels->isa << " " << i << " of " << n;
        }
      }
    }
  }
}

TEST(Dispatch, AnInstructionSetThatIsNoneIsRefusedByName) {
  const auto scalar = KernelsNamed("scalar");
  ASSERT_TRUE(scalar.ok());
  EXPECT_EQ(*scalar, AvailableKernels()[0]);
  const auto best = KernelsNamed("");
  ASSERT_TRUE(best.ok());
  EXPECT_EQ(*best, AvailableKernels().back());
  const auto none = KernelsNamed("avx3");
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, Code::kInvalidArgument);
  EXPECT_NE(none.error().message.find("\"avx3\""), std::string::npos);
  EXPECT_NE(none.error().message.find("scalar"), std::string::npos);
}

TEST(Dispatch, ScalarComesFirstAndTheBestIsActive) {
  EXPECT_EQ(AvailableKernels()[0]->isa, "scalar");
  if (std::getenv("HEARTH_ISA") == nullptr) {
    EXPECT_EQ(&ActiveKernels(), AvailableKernels().back());
  }
}

}  // namespace
}  // namespace hearth
