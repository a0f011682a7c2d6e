#include "formats/loader.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "formats/gguf/gguf.h"
#include "hearth_test_paths.h"
#include "testing/expect_refused.h"
#include "testing/temp_dir.h"
#include "testing/tiny_model.h"

namespace hearth {
namespace {

std::string Data(const char* name) {
  return std::string(HEARTH_TEST_DATA "/models/") + name;
}

void ExpectRefused(const std::string& path, Code code,
                   const std::string& words) {
  const auto model = LoadModel(path);
  ExpectRefused(model, code, words);
  ExpectRefused(model, code, path);
}

TEST(Loader, RealModelHasItsShapes) {
  const auto model = LoadModel(Data("stories260K.gguf"));
  ASSERT_TRUE(model.ok()) << model.error().message;
  const ModelConfig& c = model->config;
  EXPECT_EQ(c.architecture, "llama");
  EXPECT_EQ(c.name, "stories260K");
  EXPECT_EQ(c.n_layers, 5);
  EXPECT_EQ(c.d_model, 64);
  EXPECT_EQ(c.n_heads, 8);
  EXPECT_EQ(c.n_kv_heads, 4);
  EXPECT_EQ(c.head_dim, 8);
  EXPECT_EQ(c.d_mlp, 172);
  EXPECT_EQ(c.vocab_size, 512);
  EXPECT_EQ(c.context_length, 512);
  EXPECT_TRUE(c.tied_head);
  EXPECT_TRUE(c.rope.interleaved);
  EXPECT_EQ(c.rope.rotary_dim, 8);
  EXPECT_EQ(model->n_parameters, 260'032u);
  EXPECT_EQ(model->bos_id, 1);
  EXPECT_EQ(model->eos_ids, std::vector<std::int32_t>{2});
  EXPECT_EQ(model->gguf->TextArray("tokenizer.ggml.tokens")->size(), 512u);
  EXPECT_EQ(model->files.size(), 1u);
}

TEST(Loader, KindIsToldByContentNotByName) {
  const TempDir dir;
  WriteBytes(dir.path() + "/a.gguf", MakeTinygpt({}, TinygptForm::kF16));
  WriteBytes(dir.path() + "/a.tinygpt", MakeGguf({}, DType::kQ8_0));
  EXPECT_EQ(LoadModel(dir.path() + "/a.gguf")->config.architecture, "gpt");
  EXPECT_EQ(LoadModel(dir.path() + "/a.tinygpt")->config.architecture, "llama");
}

TEST(Loader, NameComesFromTheContentNotFromThePath) {
  const TempDir dir;
  std::filesystem::copy_file(Data("stories260K.gguf"), dir.path() + "/other");
  EXPECT_EQ(LoadModel(dir.path() + "/other")->config.name, "stories260K");
}

TEST(Loader, OtherFilesAreRefusedWithAHint) {
  const TempDir dir;
  const std::string path = dir.path() + "/model.bin";
  ExpectRefused(path, Code::kNotFound, "");
  WriteTextFile(path, "");
  ExpectRefused(path, Code::kUnsupported, "empty");
  WriteTextFile(path, std::string("\x02\0\0\0\0\0\0\0{}", 10));
  ExpectRefused(path, Code::kUnsupported, "safetensors");
  WriteTextFile(path, std::string("\x01\x02\x03\x04\xff\xfe", 6));
  ExpectRefused(path, Code::kUnsupported, "not a model file");
  std::vector<std::byte> llama2c;
  for (const std::int32_t n : {64, 172, 5, 8, 4, 512, 512})
    AppendLe(llama2c, n);
  WriteBytes(path, llama2c);
  ExpectRefused(path, Code::kUnsupported, "llama2.c");
  ExpectRefused(dir.path(), Code::kNotFound, "config.json");
}

TEST(Loader, MemoryModelNeedsNoFile) {
  for (const auto& bytes :
       {MakeTinygpt({}, TinygptForm::kF16), MakeGguf({}, DType::kQ8_0)}) {
    const auto model = LoadModelFromMemory(bytes, "built in");
    ASSERT_TRUE(model.ok()) << model.error().message;
    EXPECT_TRUE(model->files.empty());
    EXPECT_EQ(model->path, "built in");
    for (const TensorRecord& tensor : model->tensors) {
      EXPECT_GE(tensor.bytes.data(), bytes.data()) << "copied";
      EXPECT_LE(tensor.bytes.data() + tensor.bytes.size(),
                bytes.data() + bytes.size());
    }
  }
  const auto cut = MakeGguf({}, DType::kQ8_0);
  ExpectRefused(LoadModelFromMemory(ByteSpan(cut).first(cut.size() / 2), "cut"),
                Code::kCorrupt, "cut");
  ExpectRefused(LoadModelFromMemory({}, "nothing"), Code::kUnsupported,
                "nothing");
}

TEST(Loader, TokenizerNamedInATinygptHeaderIsFound) {
  const TempDir dir;
  const std::string path = dir.path() + "/m.tinygpt";
  const TinySpec spec{.vocab = 300};
  WriteBytes(path, MakeTinygpt(spec, TinygptForm::kF16,
                               ",\"tokenizerSource\":\"tok\""));
  auto model = LoadModel(path);
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_EQ(model->tokenizer_source, TokenizerSource::kDirectory);
  EXPECT_EQ(model->tokenizer_dir, "");
  std::filesystem::create_directory(dir.path() + "/tok");
  WriteTextFile(dir.path() + "/tok/tokenizer.json", "{}");
  model = LoadModel(path);
  ASSERT_TRUE(model.ok());
  EXPECT_TRUE(
      std::filesystem::equivalent(model->tokenizer_dir, dir.path() + "/tok"));
}

// This process's memory, mapped files included.
std::uint64_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  std::uint64_t size = 0, resident = 0;
  statm >> size >> resident;
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

// 1 GB of weights that are a hole in the file: whoever reads it holds it.
TEST(Loader, LargeModelOpensWithoutReadingItsWeights) {
  const TempDir dir;
  const std::string path = dir.path() + "/big.gguf";
  constexpr std::uint64_t kRows = 1 << 18, kColumns = 1024;
  const TinySpec spec{.layers = 1,
                      .d_model = kColumns,
                      .heads = 16,
                      .kv_heads = 4,
                      .d_mlp = 64};
  GgufBuilder b = TinyGgufHeader(spec, "llama");
  for (const TinyTensor& t :
       TinyTensors(spec, kGgufNames, true, false, false)) {
    if (t.name == "token_embd.weight") continue;
    b.Tensor(t.name, t.shape, 0, EncodeWeights(DType::kF32, t.values));
  }
  b.Tensor("token_embd.weight", {kRows, kColumns}, 0, {});
  const auto bytes = b.Build();
  WriteBytes(path, bytes);
  ASSERT_EQ(::truncate(path.c_str(),
                       static_cast<off_t>(bytes.size() + kRows * kColumns * 4)),
            0);
  const std::uint64_t before = ResidentBytes();
  const auto model = LoadModel(path);
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_EQ(model->config.vocab_size, 1 << 18);
  EXPECT_LT(ResidentBytes(), before + (64 << 20));
}

}  // namespace
}  // namespace hearth
