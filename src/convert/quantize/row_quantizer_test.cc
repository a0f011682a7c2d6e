#include "convert/quantize/row_quantizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace hearth {
namespace {

// Hands its values over in pieces that are no whole rows.
GgufTensorSource Source(std::vector<float> values, std::uint64_t n_columns) {
  const std::uint64_t n_rows = values.size() / n_columns;
  return {"blk.7.w.weight",
          DType::kF32,
          {n_rows, n_columns},
          [values = std::move(values)](const GgufSink& sink) -> Result<void> {
            ByteSpan bytes = std::as_bytes(std::span(values));
            while (!bytes.empty()) {
              const std::size_t n = std::min<std::size_t>(bytes.size(), 1000);
              HEARTH_TRY(sink(bytes.first(n)));
              bytes = bytes.subspan(n);
            }
            return {};
          }};
}

Result<std::vector<std::byte>> Written(GgufTensorSource tensor, DType to,
                                       int n_threads) {
  ThreadPool pool(n_threads);
  Requantize(tensor, to, pool);
  EXPECT_EQ(tensor.dtype, to);
  std::vector<std::byte> all;
  HEARTH_TRY(tensor.write([&](ByteSpan bytes) -> Result<void> {
    all.insert(all.end(), bytes.begin(), bytes.end());
    return {};
  }));
  return all;
}

std::vector<float> Wave(std::size_t n) {
  std::vector<float> x(n);
  for (std::size_t i = 0; i < n; ++i) {
    x[i] = std::sin(static_cast<float>(i * i % 8191));
  }
  return x;
}

TEST(RowQuantizer, AnyNumberOfThreadsGivesTheSameBytes) {
  const auto one = Written(Source(Wave(256 * 40), 256), DType::kQ4_K, 1);
  const auto three = Written(Source(Wave(256 * 40), 256), DType::kQ4_K, 3);
  ASSERT_TRUE(one.ok() && three.ok());
  EXPECT_EQ(one->size(), 144u * 40);
  EXPECT_TRUE(*one == *three);
}

TEST(RowQuantizer, RowsWiderThanABatchAreWhole) {
  const std::size_t n = (1 << 19) + 32;
  const auto bytes = Written(Source(Wave(2 * n), n), DType::kQ8_0, 2);
  ASSERT_TRUE(bytes.ok());
  EXPECT_EQ(bytes->size(), 2 * n / 32 * 34);
}

TEST(RowQuantizer, ValuesThatAFormatCannotExpressAreRefusedByName) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const struct {
    float value;
    DType to;
    const char* says;
  } cases[] = {{std::nanf(""), DType::kQ4_K, "nan"},
               {-kInfinity, DType::kQ8_0, "-inf"},
               {kInfinity, DType::kF32, "inf"},
               {70000.0f, DType::kF16, "70000.000000"},
               {1e30f, DType::kQ2_K, "Q2_K"}};
  for (const auto& c : cases) {
    std::vector<float> values = Wave(256 * 8);
    values[256 * 5 + 17] = c.value;
    const auto bytes = Written(Source(values, 256), c.to, 2);
    ASSERT_FALSE(bytes.ok()) << c.says;
    EXPECT_EQ(bytes.error().code, Code::kInvalidArgument);
    const std::string& message = bytes.error().message;
    EXPECT_NE(message.find("blk.7.w.weight"), std::string::npos) << message;
    EXPECT_NE(message.find("row 5, column 17"), std::string::npos) << message;
    EXPECT_NE(message.find(c.says), std::string::npos) << message;
  }
  std::vector<float> large(32, 1e30f);
  EXPECT_TRUE(Written(Source(large, 32), DType::kBF16, 1).ok());
}

}  // namespace
}  // namespace hearth
