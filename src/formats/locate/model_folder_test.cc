#include "formats/locate/model_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "formats/loader.h"
#include "testing/expect_refused.h"
#include "testing/temp_dir.h"
#include "testing/tiny_model.h"

namespace hearth {
namespace {

void WriteModel(const std::string& path, const std::string& content = "") {
  std::filesystem::create_directories(
      std::filesystem::path(path).parent_path());
  if (!content.empty()) return WriteTextFile(path, content);
  WriteBytes(path, MakeGguf(SmallestSpec(), DType::kF32));
}

TEST(ModelFolder, TheOnlyGgufFileIsTheModel) {
  const TempDir dir;
  WriteModel(dir.path() + "/model.gguf");
  WriteModel(dir.path() + "/mmproj-model.gguf", "a projector");
  WriteModel(dir.path() + "/README.md", "text");
  const auto model = LoadModel(dir.path());
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_EQ(model->path, dir.path() + "/model.gguf");
}

TEST(ModelFolder, SeveralGgufFilesAreListed) {
  const TempDir dir;
  WriteModel(dir.path() + "/a.gguf");
  WriteModel(dir.path() + "/b.gguf");
  ExpectRefused(LoadModel(dir.path()), Code::kInvalidArgument,
                "\"a.gguf\", \"b.gguf\"");
}

TEST(ModelFolder, AConfigurationComesFirst) {
  const TempDir dir;
  WriteModel(dir.path() + "/a.gguf");
  WriteTextFile(dir.path() + "/config.json", "{}");
  EXPECT_EQ(ModelInFolder(dir.path()).value(), dir.path());
}

TEST(ModelFolder, AHubFolderIsItsSnapshot) {
  const TempDir dir;
  const std::string hub = dir.path() + "/models--x--y";
  WriteModel(hub + "/refs/main", "abc\n");
  ExpectRefused(LoadModel(hub), Code::kNotFound, "without its snapshot");
  WriteModel(hub + "/snapshots/abc/m.gguf");
  EXPECT_EQ(ModelInFolder(hub).value(), hub + "/snapshots/abc/m.gguf");
  WriteModel(hub + "/snapshots/old/m.gguf");
  EXPECT_EQ(ModelInFolder(hub).value(), hub + "/snapshots/abc/m.gguf");
  WriteModel(hub + "/refs/main", "gone");
  ExpectRefused(LoadModel(hub), Code::kInvalidArgument, "\"abc\", \"old\"");
  ExpectRefused(LoadModel(dir.path()), Code::kInvalidArgument,
                "\"models--x--y\"");
}

TEST(ModelFolder, OtherFoldersAreNamed) {
  const struct {
    const char* file;
    Code code;
    const char* words;
  } kinds[] = {
      {"adapter_config.json", Code::kUnsupported, "LoRA adapter"},
      {"model_index.json", Code::kUnsupported, "pipeline for images"},
      {"model.safetensors", Code::kNotFound, "no config.json"},
      {"notes.txt", Code::kNotFound, "no config.json and no GGUF file"},
  };
  for (const auto& kind : kinds) {
    const TempDir dir;
    WriteModel(dir.path() + "/" + kind.file, "{}");
    ExpectRefused(LoadModel(dir.path()), kind.code, kind.words);
    ExpectRefused(LoadModel(dir.path()), kind.code, dir.path());
  }
}

}  // namespace
}  // namespace hearth
