#include "formats/gguf/gguf_split.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "formats/loader.h"
#include "testing/expect_refused.h"
#include "testing/temp_dir.h"
#include "testing/tiny_model.h"

namespace hearth {
namespace {

constexpr int kParts = 3;

void PutSplitKeys(GgufBuilder& b, int no, std::size_t n_tensors) {
  const auto u16 = [&](const char* key, int value) {
    std::vector<std::byte> bytes;
    AppendLe(bytes, static_cast<std::uint16_t>(value));
    b.Add(key, 2, bytes);
  };
  u16("split.no", no);
  u16("split.count", kParts);
  b.Int("split.tensors.count", static_cast<std::uint32_t>(n_tensors));
}

std::vector<TinyTensor> Tensors() {
  return TinyTensors(SmallestSpec(), kGgufNames, true, false, false);
}

std::vector<std::byte> Part(int no, std::size_t n_tensors) {
  GgufBuilder b =
      no == 0 ? TinyGgufHeader(SmallestSpec(), "llama") : GgufBuilder();
  PutSplitKeys(b, no, n_tensors);
  const auto tensors = Tensors();
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (static_cast<int>(i % kParts) != no) continue;
    b.Tensor(tensors[i].name, tensors[i].shape, 0,
             EncodeWeights(DType::kF32, tensors[i].values));
  }
  return b.Build();
}

std::string PathOf(const TempDir& dir, int part) {
  return SplitPart{dir.path() + "/m", 0, kParts}.PathOf(part);
}

void WriteParts(const TempDir& dir) {
  for (int i = 0; i < kParts; ++i) {
    WriteBytes(PathOf(dir, i), Part(i, Tensors().size()));
  }
}

TEST(GgufSplit, NamesSayWhichPart) {
  const auto part = SplitPartOf("/a/m-00002-of-00003.gguf");
  ASSERT_TRUE(part.has_value());
  EXPECT_EQ(part->stem, "/a/m");
  EXPECT_EQ(part->index, 1);
  EXPECT_EQ(part->count, 3);
  EXPECT_EQ(part->PathOf(0), "/a/m-00001-of-00003.gguf");
  for (const char* other :
       {"m.gguf", "m-00004-of-00003.gguf", "m-00000-of-00003.gguf",
        "m-0001-of-0003.gguf", "m-00001-of-00003.bin", "-of-00003.gguf"}) {
    EXPECT_FALSE(SplitPartOf(other).has_value()) << other;
  }
}

TEST(GgufSplit, AnyPartOpensTheWholeModel) {
  const TempDir dir;
  WriteParts(dir);
  const auto whole_bytes = MakeGguf(SmallestSpec(), DType::kF32);
  WriteBytes(dir.path() + "/whole.bin", whole_bytes);
  const auto whole = LoadModel(dir.path() + "/whole.bin");
  ASSERT_TRUE(whole.ok()) << whole.error().message;
  for (const std::string& path : {PathOf(dir, 0), PathOf(dir, 2), dir.path()}) {
    const auto model = LoadModel(path);
    ASSERT_TRUE(model.ok()) << model.error().message;
    EXPECT_EQ(model->files.size(), 3u);
    EXPECT_EQ(model->n_parameters, whole->n_parameters);
    for (const TensorRecord& wanted : whole->tensors) {
      const auto same = std::find_if(
          model->tensors.begin(), model->tensors.end(),
          [&](const TensorRecord& t) { return t.name == wanted.name; });
      ASSERT_NE(same, model->tensors.end()) << wanted.name;
      EXPECT_TRUE(std::ranges::equal(same->bytes, wanted.bytes));
    }
  }
}

TEST(GgufSplit, AMissingPartIsNamed) {
  const TempDir dir;
  WriteParts(dir);
  std::filesystem::remove(PathOf(dir, 1));
  ExpectRefused(LoadModel(PathOf(dir, 0)), Code::kNotFound,
                "m-00002-of-00003.gguf: this part");
}

TEST(GgufSplit, PartsOfDifferentModelsAreRefused) {
  const TempDir dir;
  WriteParts(dir);
  WriteBytes(PathOf(dir, 1), Part(2, Tensors().size()));
  ExpectRefused(LoadModel(PathOf(dir, 0)), Code::kCorrupt, "not part 2 of 3");
  WriteBytes(PathOf(dir, 1), Part(1, Tensors().size()));
  WriteBytes(PathOf(dir, 0), Part(0, Tensors().size() + 1));
  ExpectRefused(LoadModel(PathOf(dir, 0)), Code::kCorrupt,
                "should have " + std::to_string(Tensors().size() + 1));
}

TEST(GgufSplit, PartsJoinedByteByByteAreNamed) {
  const TempDir dir;
  auto joined = Part(0, Tensors().size());
  for (int i = 1; i < kParts; ++i) {
    const auto more = Part(i, Tensors().size());
    joined.insert(joined.end(), more.begin(), more.end());
  }
  const std::string path = dir.path() + "/m.gguf";
  WriteBytes(path, joined);
  ExpectRefused(LoadModel(path), Code::kUnsupported, "joined byte by byte");
  ExpectRefused(LoadModel(path), Code::kUnsupported, "llama-gguf-split");
}

TEST(GgufSplit, ARenamedPartIsTold) {
  const TempDir dir;
  const std::string path = dir.path() + "/first.gguf";
  WriteBytes(path, Part(0, Tensors().size()));
  ExpectRefused(LoadModel(path), Code::kUnsupported,
                "name does not lead to the others");
}

}  // namespace
}  // namespace hearth
