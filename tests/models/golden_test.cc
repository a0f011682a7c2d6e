// Against references that nobody here wrote: logits and greedy text of other
// implementations.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "formats/huggingface/safetensors.h"
#include "hearth/engine.h"
#include "testing/model_paths.h"

namespace hearth {
namespace {

template <typename T>
std::vector<T> Values(const SafetensorsFile& file, const char* name) {
  const SafetensorsEntry* entry = file.Find(name);
  EXPECT_NE(entry, nullptr) << name;
  std::vector<T> values(entry->bytes.size() / sizeof(T));
  std::memcpy(values.data(), entry->bytes.data(), entry->bytes.size());
  return values;
}

std::unique_ptr<Engine> OpenEngine(const EngineOptions& options) {
  auto engine = Engine::Open(options);
  EXPECT_TRUE(engine.ok()) << engine.error().message;
  return std::move(*engine);
}

double LargestDifference(const std::vector<float>& a,
                         const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(a[i]) -
                                         static_cast<double>(b[i])));
  }
  return largest;
}

class HuggingFaceFixture : public ::testing::TestWithParam<const char*> {};

// The reference cast its rope frequencies to bfloat16 together with the
// weights (docs/decisions/0003-exact-rope-frequencies.md).
TEST_P(HuggingFaceFixture, LogitsAndGreedyContinuationEqualTheReference) {
  const std::string dir = kTestData + "/models/hf/" + GetParam();
  auto reference = SafetensorsFile::Open(dir + "/reference.safetensors");
  ASSERT_TRUE(reference.ok()) << reference.error().message;
  const auto ids = Values<std::int32_t>(*reference, "input_ids");
  const auto greedy = Values<std::int32_t>(*reference, "greedy");

  auto engine =
      OpenEngine({.model_path = dir, .rope_rounding = RopeRounding::kBf16});
  const auto logits = engine->Logits(ids, {});
  ASSERT_TRUE(logits.ok());
  EXPECT_LT(LargestDifference(*logits, Values<float>(*reference, "logits")),
            2e-3);

  auto session = *engine->NewSession();
  ASSERT_TRUE(session->Sync(ids, nullptr).ok());
  const auto report =
      session->Generate({.n_tokens_max = static_cast<int>(greedy.size()),
                         .ignore_eos = true,
                         .sampling = {.temperature = 0}},
                        nullptr);
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->token_ids, greedy);

  std::vector<std::int32_t> all = ids;
  all.insert(all.end(), greedy.begin(), greedy.end());
  const auto after = engine->Logits(all, {});
  ASSERT_TRUE(after.ok());
  const auto vocab = engine->info().vocab_size;
  EXPECT_LT(
      LargestDifference(std::vector<float>(after->end() - vocab, after->end()),
                        Values<float>(*reference, "last_logits")),
      2e-3);
}

INSTANTIATE_TEST_SUITE_P(Families, HuggingFaceFixture,
                         ::testing::Values("llama", "qwen2"));

// llama2.c's own page and llama.cpp agree on this text (models/SOURCES.md).
TEST(Stories260K, GreedyTextEqualsTheReference) {
  const std::string expected =
      ", there was a little girl named Lily. She loved to play outside in the "
      "park. One day, she saw a big, red ball. She wanted to play with it, but "
      "it was too high.\nLily's mom said, \"Lily, let's go to the park.\" Lily "
      "was sad and didn't know what to do. She said, \"I want to play with "
      "your ball, but I can't find it.\"";
  auto engine = OpenEngine({.model_path = kStories260K});
  const auto ids = engine->codec().Encode("Once upon a time", true);
  ASSERT_TRUE(ids.ok());
  EXPECT_EQ(*ids, (std::vector<std::int32_t>{1, 403, 407, 261, 378}));
  auto session = *engine->NewSession();
  ASSERT_TRUE(session->Sync(*ids, nullptr).ok());
  const auto report = session->Generate(
      {.n_tokens_max = 200, .sampling = {.temperature = 0}}, nullptr);
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->text.substr(0, expected.size()), expected);
}

// PyTorch on the same weights with float32 activations
// (tools/train/agent_train.py reference), of which a product with Q8_0 weights
// keeps eight bits: the logits are near, and the text, a call of a tool with
// wide margins, is the same.
TEST(DefaultModel, EqualsThePyTorchReference) {
  const auto text = ReadTextFile(kTestData + "/default_model_reference.json");
  ASSERT_TRUE(text.ok());
  const Json reference = *ParseJson(*text, "reference");
  const auto ids = reference["ids"].get<std::vector<std::int32_t>>();
  auto engine = OpenEngine({});
  const auto logits = engine->Logits(ids, {});
  ASSERT_TRUE(logits.ok());
  const auto want = reference["lastLogits"].get<std::vector<float>>();
  ASSERT_EQ(engine->info().vocab_size, static_cast<int>(want.size()));
  double off = 0, all = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    const double x = *(logits->end() - static_cast<std::ptrdiff_t>(i) - 1);
    const double y = want[want.size() - 1 - i];
    off += (x - y) * (x - y);
    all += y * y;
  }
  EXPECT_LT(std::sqrt(off / all), 0.03);
  auto session = *engine->NewSession();
  ASSERT_TRUE(session->Sync(ids, nullptr).ok());
  const auto greedy = reference["greedyIds"].get<std::vector<std::int32_t>>();
  const auto report =
      session->Generate({.n_tokens_max = static_cast<int>(greedy.size()),
                         .ignore_eos = true,
                         .sampling = {.temperature = 0}},
                        nullptr);
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->token_ids, greedy);
  EXPECT_NE(report->text.find("<tool_call>"), std::string::npos);
}

}  // namespace
}  // namespace hearth
