// Importance: errors go where they count least.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "tensor/dequantize.h"
#include "tensor/quantize.h"

namespace hearth {
namespace {

constexpr std::size_t kValues = 256 * 40;

std::vector<float> RoundTrip(DType dtype, const std::vector<float>& x,
                             const float* importance) {
  const auto n = static_cast<std::int64_t>(x.size());
  std::vector<std::byte> bytes(*BytesOf(dtype, x.size()));
  QuantizeRow(dtype, x.data(), n, bytes.data(), importance);
  std::vector<float> out(x.size());
  DequantizeBlocks(dtype, bytes.data(), n, out.data());
  return out;
}

double ErrorOf(const std::vector<float>& x, const std::vector<float>& read,
               const std::vector<float>& importance) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    sum += double{importance[i]} * std::pow(double{x[i]} - double{read[i]}, 2);
  }
  return sum;
}

class ImportanceTest : public testing::TestWithParam<DType> {};

INSTANTIATE_TEST_SUITE_P(
    Formats, ImportanceTest,
    testing::Values(DType::kQ4_0, DType::kQ4_1, DType::kQ5_0, DType::kQ5_1,
                    DType::kQ2_K, DType::kQ3_K, DType::kQ4_K, DType::kQ5_K,
                    DType::kQ6_K, DType::kIQ4_NL, DType::kIQ4_XS),
    [](const auto& dtype) { return std::string(InfoOf(dtype.param).name); });

TEST_P(ImportanceTest, ErrorsGoWhereTheyCountLeast) {
  std::mt19937 rng(5);
  std::normal_distribution<float> normal;
  std::vector<float> x(kValues), importance(kValues);
  for (float& value : x) value = 0.02f * normal(rng);
  for (float& value : importance) value = std::exp(2.0f * normal(rng));
  const double plain =
      ErrorOf(x, RoundTrip(GetParam(), x, nullptr), importance);
  const double guided =
      ErrorOf(x, RoundTrip(GetParam(), x, importance.data()), importance);
  EXPECT_LT(guided, 0.85 * plain);
}

TEST_P(ImportanceTest, AnyImportanceGivesASaneBlock) {
  std::mt19937 rng(6);
  std::normal_distribution<float> normal;
  std::vector<float> x(kValues);
  for (float& value : x) value = normal(rng);
  const std::vector<float> alike(kValues, 1.0f);
  const double plain = ErrorOf(x, RoundTrip(GetParam(), x, nullptr), alike);
  for (const float each : {0.0f, 1e-38f, 1.0f, 1e38f}) {
    const std::vector<float> importance(kValues, each);
    const auto read = RoundTrip(GetParam(), x, importance.data());
    EXPECT_LT(ErrorOf(x, read, alike), 1.25 * plain) << each;
  }
  // One column of a block alone counts.
  std::vector<float> one(kValues, 0.0f);
  for (std::size_t i = 7; i < kValues; i += 32) one[i] = 1.0f;
  const auto read = RoundTrip(GetParam(), x, one.data());
  EXPECT_LT(ErrorOf(x, read, one),
            ErrorOf(x, RoundTrip(GetParam(), x, nullptr), one));
  for (const float value : read) ASSERT_TRUE(std::isfinite(value));
  const std::vector<float> zeros(kValues, 0.0f);
  EXPECT_EQ(RoundTrip(GetParam(), zeros, one.data()), zeros);
}

TEST(Importance, ChangesNothingInQ8) {
  std::vector<float> x(256), importance(256, 2.0f);
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = std::sin(static_cast<float>(i));
  }
  EXPECT_EQ(RoundTrip(DType::kQ8_0, x, nullptr),
            RoundTrip(DType::kQ8_0, x, importance.data()));
}

}  // namespace
}  // namespace hearth
