// Importance matrices: measured as llama-imatrix does, and read in both forms.
#include "hearth/importance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/file.h"
#include "engine/engine_core.h"
#include "importance_testing.h"
#include "model/cpu/cpu_ops.h"
#include "model/cpu/linear.h"
#include "testing/expect_refused.h"
#include "testing/model_paths.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

const std::string kPeers = kTestData + "/models/imatrix/stories260K";

TEST(Importance, IsThatOfLlamaImatrix) {
  const ImportanceMatrix ours = Measured();
  for (const std::string ending : {".gguf", ".dat"}) {
    const auto theirs = ReadImportance(kPeers + ending);
    ASSERT_TRUE(theirs.ok()) << theirs.error().message;
    EXPECT_EQ(ours.entries.size(), theirs->entries.size());
    EXPECT_EQ(theirs->n_chunks, ours.n_chunks);
    for (const ImportanceEntry& other : theirs->entries) {
      const ImportanceEntry* own = Find(ours, other.name);
      ASSERT_NE(own, nullptr) << other.name;
      ASSERT_EQ(own->sums.size(), other.sums.size());
      EXPECT_EQ(own->counts, std::vector<float>{256.0f});
      for (std::size_t i = 0; i < own->sums.size(); ++i) {
        const float mean = own->sums[i] / own->counts[0];
        EXPECT_NEAR(mean, other.sums[i] / other.counts[0],
                    0.005f * mean + 1e-6f)
            << other.name << ending << " " << i;
      }
    }
  }
}

// Looking on changes nothing.
class Ignored final : public LinearInputs {
 public:
  void Add(const Linear&, const float* x, std::int64_t, int n_rows) override {
    seen += n_rows * (x[0] == x[0] ? 1 : 0);
  }
  int seen = 0;
};

TEST(Importance, IsLookedAtWithoutChangingABit) {
  const auto engine = Engine::Open({.model_path = kStories260K});
  ASSERT_TRUE(engine.ok());
  const auto ids = (*engine)->codec().Encode(kStory, true).value();
  const auto tokens = std::span(ids).first(40);
  const auto plain = (*engine)->Logits(tokens, {}).value();
  EngineCore& core = EngineAccess::Core(**engine);
  Ignored inputs;
  StepRunner steps(core.model, core.workers,
                   MakeCpuOps(core.model, core.workers->pool, &inputs));
  History history(core.kv.NewSequence());
  const StepItem item{&history, tokens, LogitRows::kAll};
  ASSERT_TRUE(steps.Run({&item, 1}).ok());
  EXPECT_TRUE(std::ranges::equal(history.AllLogits(), plain));
  // q, k, v, o, gate, up and down of five layers, and the output matrix.
  EXPECT_EQ(inputs.seen, 40 * (5 * 7 + 1));
}

TEST(Importance, IsReadAsItWasWritten) {
  const TempDir dir;
  const std::string path = dir.path() + "/i.gguf";
  const ImportanceMatrix matrix{
      .entries = {{"blk.0.a.weight", {1, 2, 3}, {4}},
                  {"blk.0.e.weight", {1, 2, 3, 4}, {2, 0}}},
      .datasets = {"a.txt"},
      .n_chunks = 7,
      .chunk_tokens = 64};
  for (int i = 0; i < 2; ++i) {  // the second time over the first
    ASSERT_TRUE(WriteImportance(path, matrix).ok());
  }
  const auto read = ReadImportance(path);
  ASSERT_TRUE(read.ok()) << read.error().message;
  ASSERT_EQ(read->entries.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(read->entries[i].name, matrix.entries[i].name);
    EXPECT_EQ(read->entries[i].sums, matrix.entries[i].sums);
    EXPECT_EQ(read->entries[i].counts, matrix.entries[i].counts);
  }
  EXPECT_EQ(read->datasets, matrix.datasets);
  EXPECT_EQ(read->n_chunks, 7);
  EXPECT_EQ(read->chunk_tokens, 64);
  std::ofstream(dir.path() + "/other.txt") << "precious";
  ExpectRefused(WriteImportance(dir.path() + "/other.txt", matrix),
                Code::kInvalidArgument, "replaced");
}

TEST(Importance, DamagedFilesAreRefused) {
  for (const std::string ending : {".gguf", ".dat"}) {
    const auto file = ReadTextFile(kPeers + ending);
    ASSERT_TRUE(file.ok());
    const std::size_t step = file->size() / 97 + 1;
    for (std::size_t n = 0; n + 64 < file->size(); n += step) {
      const std::string cut = file->substr(0, n);
      EXPECT_FALSE(ReadImportanceFromMemory(AsBytes(cut), "cut").ok()) << n;
    }
  }
  ExpectRefused(ReadImportance(kStories260K), Code::kUnsupported,
                "no importance matrix");
  ExpectRefused(ReadImportance(kPeers + ".none"), Code::kNotFound, "none");
}

}  // namespace
}  // namespace hearth
