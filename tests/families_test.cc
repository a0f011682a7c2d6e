// Every family against the reference that its fixture holds: logits of another
// implementation, from Hugging Face's form and after conversion to GGUF.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "hearth/engine.h"
#include "model/io/safetensors.h"
#include "testing/model_paths.h"

namespace hearth {
namespace {

struct Fixture {
  const char* name;
  RopeRounding rounding;  // as the reference rounded its frequencies
  double tolerance;
};

void PrintTo(const Fixture& fixture, std::ostream* out) {
  *out << fixture.name;
}

// In the repository, or else where the whole collection lies.
std::string DirectoryOf(const std::string& name) {
  for (const std::string& root :
       {kTestData + "/models/hf/", std::string(HEARTH_SHARED "/fixtures/hf/")}) {
    if (std::filesystem::exists(root + name + "/reference.safetensors")) {
      return root + name;
    }
  }
  return "";
}

template <typename T>
std::vector<T> Values(const SafetensorsFile& file, const char* name) {
  const SafetensorsEntry* entry = file.Find(name);
  EXPECT_NE(entry, nullptr) << name;
  if (entry == nullptr) return {};
  std::vector<T> values(entry->bytes.size() / sizeof(T));
  std::memcpy(values.data(), entry->bytes.data(), entry->bytes.size());
  return values;
}

double LargestDifference(std::span<const float> a, std::span<const float> b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(a[i]) -
                                         static_cast<double>(b[i])));
  }
  return largest;
}

// How far the best logit of `row` is above the second.
double Lead(std::span<const float> row) {
  std::vector<float> sorted(row.begin(), row.end());
  std::nth_element(sorted.begin(), sorted.begin() + 1, sorted.end(),
                   std::greater<>());
  return static_cast<double>(
             *std::max_element(sorted.begin(), sorted.begin() + 1)) -
         static_cast<double>(sorted[1]);
}

struct Reference {
  std::vector<std::int32_t> ids, greedy;
  std::vector<float> logits, last_logits;
};

Reference ReadReference(const std::string& dir) {
  auto file = SafetensorsFile::Open(dir + "/reference.safetensors");
  EXPECT_TRUE(file.ok()) << file.error().message;
  return {Values<std::int32_t>(*file, "input_ids"),
          Values<std::int32_t>(*file, "greedy"),
          Values<float>(*file, "logits"), Values<float>(*file, "last_logits")};
}

void CheckAgainst(const Reference& reference, const std::string& model,
                  const Fixture& fixture) {
  auto engine = Engine::Open(
      {.model_path = model, .rope_rounding = fixture.rounding});
  ASSERT_TRUE(engine.ok()) << engine.error().message;
  // In uneven steps: windows and experts must not see where they are cut.
  const std::vector<int> steps = {37, 1, 64};
  const auto logits = (*engine)->Logits(reference.ids, steps);
  ASSERT_TRUE(logits.ok()) << logits.error().message;
  const double difference = LargestDifference(*logits, reference.logits);
  ::testing::Test::RecordProperty("difference", std::to_string(difference));
  std::printf("  %s: largest difference %.2g\n", fixture.name, difference);
  EXPECT_LT(difference, fixture.tolerance);

  // Along the reference's own continuation, so that one near tie does not make
  // all that follows incomparable.
  std::vector<std::int32_t> all = reference.ids;
  all.insert(all.end(), reference.greedy.begin(), reference.greedy.end());
  const auto after = (*engine)->Logits(all, {});
  ASSERT_TRUE(after.ok());
  const auto vocab = static_cast<std::size_t>((*engine)->info().vocab_size);
  const std::span<const float> rows(*after);
  for (std::size_t i = 0; i < reference.greedy.size(); ++i) {
    const auto row =
        rows.subspan((reference.ids.size() + i - 1) * vocab, vocab);
    const auto best = std::max_element(row.begin(), row.end()) - row.begin();
    if (best != reference.greedy[i]) {
      EXPECT_LT(Lead(row), fixture.tolerance) << "greedy step " << i;
    }
  }
  EXPECT_LT(LargestDifference(rows.last(vocab), reference.last_logits),
            fixture.tolerance);
}

class Families : public ::testing::TestWithParam<Fixture> {};

TEST_P(Families, LogitsAndGreedyContinuationEqualTheReference) {
  const std::string dir = DirectoryOf(GetParam().name);
  if (dir.empty()) GTEST_SKIP() << "no such fixture here";
  CheckAgainst(ReadReference(dir), dir, GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    All, Families,
    ::testing::Values(Fixture{"llama", RopeRounding::kBf16, 2e-3},
                      Fixture{"mistral", RopeRounding::kBf16, 2e-3},
                      Fixture{"qwen2", RopeRounding::kBf16, 2e-3},
                      Fixture{"qwen3", RopeRounding::kBf16, 2e-3},
                      Fixture{"qwen3_moe", RopeRounding::kBf16, 5e-3},
                      Fixture{"gemma3", RopeRounding::kExact, 5e-3},
                      Fixture{"phi3", RopeRounding::kFp16, 2e-3},
                      Fixture{"smollm3", RopeRounding::kBf16, 2e-3},
                      Fixture{"gpt2", RopeRounding::kExact, 2e-3},
                      Fixture{"gpt_oss", RopeRounding::kBf16, 5e-3}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace hearth
