// Weights that are not finite: the engine says which, and keeps nothing of what
// they gave, in memory or in the prompt cache.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>

#include "formats/loader.h"
#include "hearth/engine.h"
#include "hearth/perplexity.h"
#include "testing/launch.h"
#include "testing/model_paths.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

std::string ReadAll(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class NonFiniteWeights : public testing::Test {
 protected:
  // A copy of the model whose tensor `name` has a NaN as its element `index`.
  std::string Poisoned(const std::string& name, std::size_t index) const {
    std::string file = ReadAll(kStories260K);
    const auto model = LoadModel(kStories260K);
    EXPECT_TRUE(model.ok());
    for (const TensorRecord& tensor : model->tensors) {
      if (tensor.name != name) continue;
      EXPECT_EQ(tensor.type, "F32");
      const std::size_t at = file.find(AsText(tensor.bytes));
      EXPECT_NE(at, std::string::npos);
      const float nan = std::numeric_limits<float>::quiet_NaN();
      std::memcpy(file.data() + at + index * sizeof(nan), &nan, sizeof(nan));
      const std::string path = dir_.path() + "/poisoned.gguf";
      std::ofstream(path, std::ios::binary) << file;
      return path;
    }
    ADD_FAILURE() << "no tensor " << name;
    return {};
  }
  int StoredBlocks() const {
    int n = 0;
    const std::string blocks = dir_.path() + "/s/blocks";
    if (!fs::exists(blocks)) return 0;
    for (const auto& entry : fs::recursive_directory_iterator(blocks)) {
      n += entry.is_regular_file() ? 1 : 0;
    }
    return n;
  }

  TempDir dir_;
  EngineOptions options_ = WithDir(dir_.path() + "/s");
};

TEST_F(NonFiniteWeights, TheErrorNamesThemAndNothingIsStored) {
  options_.model_path = Poisoned("blk.2.ffn_down.weight", 5);
  const auto engine = Engine::Open(options_);
  ASSERT_TRUE(engine.ok()) << engine.error().message;
  const auto session = (*engine)->NewSession().value();
  for (int i = 0; i < 2; ++i) {
    const auto report = session->Sync(Ids(100), nullptr);
    ASSERT_FALSE(report.ok());
    EXPECT_EQ(report.error().code, Code::kCorrupt);
    EXPECT_THAT(report.error().message, HasSubstr("(layer 2)"));
    EXPECT_THAT(report.error().message, HasSubstr("NaN or infinite"));
  }
  const auto perplexity = MeasurePerplexity(
      **engine, "Once upon a time there was a cat.", {.context_tokens = 8});
  ASSERT_FALSE(perplexity.ok());
  EXPECT_THAT(perplexity.error().message, HasSubstr("(layer 2)"));
  EXPECT_EQ(session->Usage().tokens, 0);
  EXPECT_TRUE((*engine)->DrainSaves().ok());
  EXPECT_EQ(StoredBlocks(), 0);
}

}  // namespace
}  // namespace hearth
