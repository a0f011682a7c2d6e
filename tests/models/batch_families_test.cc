// Several sequences in one step, for every family and for weights in blocks:
// alone = in any batch = in any cut, bit for bit.
#include <gtest/gtest.h>

#include <string>

#include "formats/loader.h"
#include "testing/family_fixture.h"
#include "testing/step_schedule.h"
#include "testing/temp_dir.h"
#include "testing/tiny_model.h"

namespace hearth {
namespace {

class BatchFamilies : public ::testing::TestWithParam<const char*> {};

TEST_P(BatchFamilies, AloneIsInAnyBatchIsInAnyCut) {
  const std::string dir = DirectoryOf(GetParam());
  if (dir.empty()) GTEST_SKIP() << "no such fixture here";
  const LoadedModel model = Load(dir, Rounding::kExact);
  unsigned seed = 0;
  for (const KvFormat format : kStepFormats) {
    CheckSchedule(model, format, 60, seed++);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, BatchFamilies,
    ::testing::Values("gemma3", "gpt2", "gpt_oss", "llama", "mistral", "phi3",
                      "qwen2", "qwen3", "qwen3_moe", "smollm3", "gemma2",
                      "granite", "llama_yarn", "olmo2", "phi3_longrope",
                      "olmo3", "exaone4", "ministral3", "seed_oss", "lfm2",
                      "qwen3_5_long", "qwen3_5_moe", "qwen3_next",
                      "gemma4_shared", "gemma4_moe", "nemotron_h",
                      "granitemoehybrid", "falcon_h1", "glm4_moe", "minimax_m2",
                      "deepseek_v3"),
    [](const auto& name) { return std::string(name.param); });

// Whose rows are packed in groups.
TEST(Batch, QuantisedWeightsGiveTheSameBitsInAnyBatch) {
  const TempDir temp;
  const TinySpec spec{.d_mlp = 128, .context = 256};
  unsigned seed = 0;
  for (const DType dtype : {DType::kQ8_0, DType::kQ4_0, DType::kBF16}) {
    const std::string path = temp.path() + "/" + std::to_string(seed) + ".gguf";
    WriteBytes(path, MakeGguf(spec, dtype));
    const auto model = LoadModel(path);
    ASSERT_TRUE(model.ok()) << model.error().message;
    CheckSchedule(*model, KvFormat::kF16, 60, seed++);
  }
}

}  // namespace
}  // namespace hearth
