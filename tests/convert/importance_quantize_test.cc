// Importance matrices are of use for quantising, where they are of the model.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/file.h"
#include "convert_testing.h"
#include "hearth/importance.h"
#include "importance_testing.h"
#include "testing/expect_refused.h"
#include "testing/model_paths.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

// That errors then lie where they count least: quantize_importance_test.cc.
TEST(ImportanceQuantize, LeadsToOtherBytesOfTheSameModel) {
  const TempDir dir;
  const std::string matrix = dir.path() + "/i.gguf";
  ASSERT_TRUE(WriteImportance(matrix, Measured()).ok());
  const std::vector<float> expected = LogitsOf(kStories260K);
  for (const char* type : {"Q4_0", "Q4_1", "IQ4_NL"}) {
    const std::string plain = dir.path() + "/p.gguf";
    const std::string guided = dir.path() + "/g.gguf";
    ASSERT_TRUE(
        QuantizeModel(kStories260K, plain, type, {.replace = true}).ok());
    const auto report =
        QuantizeModel(kStories260K, guided, type, {.replace = true}, matrix);
    ASSERT_TRUE(report.ok()) << report.error().message;
    EXPECT_LT(Distance(expected, LogitsOf(guided)), 0.2) << type;
    EXPECT_NE(*ReadTextFile(plain), *ReadTextFile(guided));
  }
}

TEST(ImportanceQuantize, OfAnotherModelOrForNothingIsRefused) {
  const TempDir dir;
  const std::string out = dir.path() + "/q.gguf";
  const std::string path = dir.path() + "/i.gguf";
  const auto quantize = [&](const ImportanceMatrix& matrix, const char* type) {
    EXPECT_TRUE(WriteImportance(path, matrix, {.replace = true}).ok());
    return QuantizeModel(kStories260K, out, type, {.replace = true}, path);
  };
  ImportanceMatrix matrix = Measured();
  ExpectRefused(quantize(matrix, "Q8_0"), Code::kInvalidArgument,
                "Q8_0 makes no use");
  ExpectRefused(quantize(matrix, "iq2_xs"), Code::kInvalidArgument,
                "read but not written");
  matrix.entries.pop_back();
  const auto lacking = quantize(matrix, "Q4_0");
  ASSERT_TRUE(lacking.ok()) << lacking.error().message;
  EXPECT_TRUE(std::ranges::any_of(lacking->notes, [](const std::string& note) {
    return note.find("without importance") != std::string::npos &&
           note.find("blk.4.") != std::string::npos;
  }));
  matrix.entries[0].sums.pop_back();
  ExpectRefused(quantize(matrix, "Q4_0"), Code::kInvalidArgument,
                "of another model");
  matrix.entries[0] = {"blk.9.attn_q.weight", {1}, {1}};
  ExpectRefused(quantize(matrix, "Q4_0"), Code::kInvalidArgument,
                "blk.9.attn_q.weight, which the model has not");
}

}  // namespace
}  // namespace hearth
