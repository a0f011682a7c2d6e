// Every family against a reference that hearth had no part in: logits that
// transformers computed (models/hf) or a double-precision forward in numpy
// (models/made, tools/make_family_models.py); from Hugging Face's form and
// after conversion to GGUF.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "base/file.h"
#include "convert/huggingface/hf_export.h"
#include "testing/export_gguf.h"
#include "testing/family_fixture.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

struct Fixture {
  const char* name;
  Rounding rounding;
  double tolerance;
};

double LargestDifference(std::span<const float> a, std::span<const float> b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const double d =
        std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    if (!(d <= largest)) largest = d;  // a NaN is the largest of all
  }
  return largest;
}

// How far the best of `row` is above the second.
float Lead(std::span<const float> row) {
  std::vector<float> sorted(row.begin(), row.end());
  std::partial_sort(sorted.begin(), sorted.begin() + 2, sorted.end(),
                    std::greater<>());
  return sorted[0] - sorted[1];
}

void CheckAgainst(const Reference& reference, const LoadedModel& model,
                  double tolerance) {
  ASSERT_FALSE(model.weights.layers.empty());
  // Along the reference's own continuation, so that one near tie does not make
  // all that follows incomparable.
  std::vector<std::int32_t> ids = reference.ids;
  ids.insert(ids.end(), reference.greedy.begin(), reference.greedy.end());
  const std::vector<float> logits = Logits(model, ids, 512, 1);
  const std::span<const float> all(logits);
  EXPECT_LT(
      LargestDifference(all.first(reference.logits.size()), reference.logits),
      tolerance);
  const auto vocab = static_cast<std::size_t>(model.config.vocab_size);
  for (std::size_t i = 0; i < reference.greedy.size(); ++i) {
    const auto row = all.subspan((reference.ids.size() + i - 1) * vocab, vocab);
    const auto best = std::max_element(row.begin(), row.end()) - row.begin();
    if (best != reference.greedy[i]) {
      EXPECT_LT(Lead(row), tolerance) << "greedy step " << i;
    }
  }
  EXPECT_LT(LargestDifference(all.last(vocab), reference.last_logits),
            tolerance);
}

class Families : public ::testing::TestWithParam<Fixture> {
 protected:
  void SetUp() override {
    dir_ = DirectoryOf(GetParam().name);
    if (dir_.empty()) GTEST_SKIP() << "no such fixture here";
  }
  std::string dir_;
};

TEST_P(Families, EqualsTheReference) {
  CheckAgainst(ReadReference(dir_), Load(dir_, GetParam().rounding),
               GetParam().tolerance);
}

TEST_P(Families, EqualsTheReferenceAfterConversionToGguf) {
  const TempDir temp;
  const std::string path = temp.path() + "/model.gguf";
  const auto model = LoadModel(dir_);
  ASSERT_TRUE(model.ok()) << model.error().message;
  const auto written = ExportGguf(*model, path);
  ASSERT_TRUE(written.ok()) << written.error().message;
  const LoadedModel gguf = Load(path, GetParam().rounding);
  CheckAgainst(ReadReference(dir_), gguf, GetParam().tolerance);

  // Once more, from GGUF to GGUF: nothing is left to change.
  const std::string again = temp.path() + "/again.gguf";
  ASSERT_TRUE(ExportGguf(*LoadModel(path), again).ok());
  const auto first = MappedFile::Open(path), second = MappedFile::Open(again);
  EXPECT_TRUE(std::ranges::equal(first->bytes(), second->bytes()));
}

// What hearth writes as a Hugging Face directory.
void WriteDirectory(const LoadedModel& model, const std::string& dir) {
  const auto description = DescribeForHf(model);
  ASSERT_TRUE(description.ok()) << description.error().message;
  std::filesystem::create_directories(dir);
  std::ofstream(dir + "/config.json") << description->json;
  const auto written =
      WriteHfTensors(model, *description, dir + "/model.safetensors");
  ASSERT_TRUE(written.ok()) << written.error().message;
}

TEST_P(Families, IsTheSameAfterConversionToHuggingFace) {
  const TempDir temp;
  const auto model = LoadModel(dir_);
  ASSERT_TRUE(model.ok());
  const std::vector<std::int32_t> ids = ReadReference(dir_).ids;
  const std::vector<float> want =
      Logits(Load(dir_, GetParam().rounding), ids, 512, 1);
  WriteDirectory(*model, temp.path() + "/direct");
  if (HasFatalFailure()) return;
  EXPECT_EQ(
      Logits(Load(temp.path() + "/direct", GetParam().rounding), ids, 512, 1),
      want);
  const std::string gguf = temp.path() + "/model.gguf";
  ASSERT_TRUE(ExportGguf(*model, gguf).ok());
  const auto exported = LoadModel(gguf);
  ASSERT_TRUE(exported.ok()) << exported.error().message;
  WriteDirectory(*exported, temp.path() + "/back");
  if (HasFatalFailure()) return;
  const std::vector<float> back =
      Logits(Load(temp.path() + "/back", GetParam().rounding), ids, 512, 1);
  EXPECT_LT(LargestDifference(back, want), 1e-5);
}

TEST_P(Families, StepsAndThreadsDoNotMatter) {
  const LoadedModel model = Load(dir_, GetParam().rounding);
  const std::vector<std::int32_t> ids = ReadReference(dir_).ids;
  const std::vector<float> whole = Logits(model, ids, 512, 1);
  for (const int step : {37, 1}) {
    for (const int threads : {1, 3}) {
      const std::vector<float> cut = Logits(model, ids, step, threads);
      ASSERT_EQ(
          std::memcmp(whole.data(), cut.data(), whole.size() * sizeof(float)),
          0)
          << "steps of " << step << ", threads: " << threads;
    }
  }
}

// Beyond one attention segment of 512 tokens; the window hides whole segments.
TEST(FamiliesInALongContext, WindowsAndSinksAreTheSameHoweverItWasCut) {
  for (const char* name : {"mistral", "gpt_oss", "gemma3"}) {
    const LoadedModel model = Load(DirectoryOf(name), Rounding::kExact);
    std::vector<std::int32_t> ids;
    for (int i = 0; i < 900; ++i) ids.push_back(i * 7919 % 384);
    const std::vector<float> whole = Logits(model, ids, 512, 1);
    for (const int step : {300, 45}) {
      const std::vector<float> cut = Logits(model, ids, step, 3);
      ASSERT_EQ(
          std::memcmp(whole.data(), cut.data(), whole.size() * sizeof(float)),
          0)
          << name << ", steps of " << step;
    }
  }
}

// Its tensors under their names in a model that sees images, and one of those
// that see.
TEST(FamiliesInLargerModels, TheTextPartOfQwen3VlIsAQwen3) {
  const std::string dir = DirectoryOf("qwen3");
  if (dir.empty()) GTEST_SKIP() << "no such fixture here";
  const TempDir temp;
  const auto file = SafetensorsFile::Open(dir + "/model.safetensors");
  ASSERT_TRUE(file.ok());
  std::vector<SafetensorsTensor> tensors;
  for (const SafetensorsEntry& t : file->tensors()) {
    const std::string name = t.name.starts_with("model.")
                                 ? "model.language_model." + t.name.substr(6)
                                 : t.name;
    tensors.push_back({name, t.type, t.shape, t.bytes});
  }
  const float seen = 1;
  tensors.push_back({"model.visual.merger.norm.weight",
                     "F32",
                     {1},
                     std::as_bytes(std::span(&seen, 1))});
  ASSERT_TRUE(WriteSafetensors(temp.path() + "/model.safetensors", tensors, {},
                               {.replace = true})
                  .ok());
  std::string text = *ReadTextFile(dir + "/config.json");
  constexpr std::string_view kType = "\"qwen3\"";
  text.replace(text.find(kType), kType.size(), "\"qwen3_vl_text\"");
  std::ofstream(temp.path() + "/config.json")
      << "{\"architectures\":[\"Qwen3VLForConditionalGeneration\"],"
         "\"text_config\":"
      << text << "}";
  const LoadedModel model = Load(temp.path(), Rounding::kBf16);
  EXPECT_EQ(model.config.architecture, "qwen3");
  const std::vector<std::int32_t> ids = ReadReference(dir).ids;
  EXPECT_EQ(Logits(model, ids, 512, 1),
            Logits(Load(dir, Rounding::kBf16), ids, 512, 1));
}

INSTANTIATE_TEST_SUITE_P(
    All, Families,
    ::testing::Values(Fixture{"llama", Rounding::kBf16, 2e-3},
                      Fixture{"mistral", Rounding::kBf16, 2e-3},
                      Fixture{"qwen2", Rounding::kBf16, 2e-3},
                      Fixture{"qwen3", Rounding::kBf16, 2e-3},
                      Fixture{"qwen3_moe", Rounding::kBf16, 5e-3},
                      Fixture{"gemma3", Rounding::kExact, 5e-3},
                      Fixture{"phi3", Rounding::kF16, 2e-3},
                      Fixture{"smollm3", Rounding::kBf16, 2e-3},
                      Fixture{"gpt2", Rounding::kExact, 2e-3},
                      Fixture{"gpt_oss", Rounding::kBf16, 5e-3},
                      Fixture{"gemma2", Rounding::kExact, 1e-4},
                      Fixture{"olmo2", Rounding::kExact, 1e-4},
                      Fixture{"granite", Rounding::kExact, 1e-4},
                      Fixture{"llama_yarn", Rounding::kExact, 1e-4},
                      Fixture{"phi3_longrope", Rounding::kExact, 1e-4},
                      Fixture{"olmo3", Rounding::kBf16, 2e-3},
                      Fixture{"exaone4", Rounding::kExact, 2e-3},
                      Fixture{"ministral3", Rounding::kExact, 2e-3},
                      Fixture{"seed_oss", Rounding::kExact, 2e-3},
                      Fixture{"lfm2", Rounding::kBf16, 2e-3},
                      Fixture{"qwen3_5", Rounding::kBf16, 2e-3},
                      Fixture{"qwen3_5_long", Rounding::kExact, 2e-3},
                      Fixture{"qwen3_5_moe", Rounding::kExact, 2e-3},
                      Fixture{"qwen3_next", Rounding::kBf16, 2e-3},
                      Fixture{"gemma4", Rounding::kBf16, 2e-3},
                      Fixture{"gemma4_shared", Rounding::kExact, 2e-3},
                      Fixture{"gemma4_moe", Rounding::kExact, 1e-4},
                      Fixture{"nemotron_h", Rounding::kExact, 2e-4},
                      Fixture{"granitemoehybrid", Rounding::kExact, 2e-3},
                      Fixture{"falcon_h1", Rounding::kExact, 2e-3},
                      Fixture{"glm4_moe", Rounding::kExact, 2e-3},
                      Fixture{"minimax_m2", Rounding::kExact, 1e-4},
                      Fixture{"deepseek_v3", Rounding::kExact, 2e-3},
                      Fixture{"deepseek_v2", Rounding::kExact, 1e-4},
                      Fixture{"mistral4", Rounding::kExact, 1e-4},
                      Fixture{"lfm2_moe", Rounding::kExact, 1e-4}),
    [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace hearth
