#include "formats/locate/file_kind.h"

#include <gtest/gtest.h>

#include <string>

#include "formats/loader.h"
#include "testing/expect_refused.h"
#include "testing/temp_dir.h"
#include "testing/tiny_model.h"

namespace hearth {
namespace {

using namespace std::string_literals;

constexpr char kLfsPointer[] =
    "version https://git-lfs.github.com/spec/v1\noid sha256:4a2f\nsize 4920\n";

// A local header of a ZIP archive that begins with the file `name`.
std::string Zip(const std::string& name) {
  std::string zip = "PK\x03\x04"s + std::string(22, '\0');
  zip += static_cast<char>(name.size());
  zip += "\0\0\0"s;
  return zip + name + "content";
}

TEST(FileKind, EveryAccidentIsNamedWithItsRemedy) {
  const struct {
    std::string content;
    const char* words;
  } kinds[] = {
      {"", "empty"},
      {kLfsPointer, "git lfs pull"},
      {"<!DOCTYPE html>\n<html><body>404</body></html>", "web page"},
      {"\n  <HTML><head>", "web page"},
      {R"({"error":"Access to model x/y is restricted."})",
       "a server's answer, not the file: \"Access to model x/y"},
      {"Invalid username or password.", "text: \"Invalid username"},
      {"FROM ./model.gguf\nPARAMETER temperature 0.7\n", "Modelfile"},
      {"{\"a\":1}", "JSON"},
      {"\x1f\x8b\x08 gzip", "gunzip"},
      {"\x28\xb5\x2f\xfd zstd", "unzstd"},
      {"\xfd"
       "7zXZ\0 xz"s,
       "unxz"},
      {Zip("model.gguf"), "holds \"model.gguf\"; unpack"},
      {Zip("archive/data.pkl"), "PyTorch"},
      {"\x80\x02}q\x01", "PyTorch"},
      {"tjgg\x03", "before GGUF"},
      {"MZqFpD='\n", "llamafile"},
      {"\x7f"
       "ELF\x02",
       "program"},
      {std::string(5000, '\0'), "zeros"},
  };
  const TempDir dir;
  const std::string path = dir.path() + "/model.gguf";
  for (const auto& kind : kinds) {
    WriteTextFile(path, kind.content);
    const auto model = LoadModel(path);
    ExpectRefused(model, Code::kUnsupported, kind.words);
    ExpectRefused(model, Code::kUnsupported, path + ": ");
  }
}

TEST(FileKind, ControlCharactersOfAnAnswerAreEscaped) {
  const auto kind = ForeignKind(AsBytes("{\"error\":\"\\u001b[2Jgone\"}"));
  ASSERT_TRUE(kind.has_value());
  EXPECT_NE(kind->find("\\x1b[2Jgone"), std::string::npos) << *kind;
}

TEST(FileKind, ModelsAreNone) {
  EXPECT_EQ(DownloadAccident(MakeGguf(SmallestSpec(), DType::kF32)),
            std::nullopt);
  EXPECT_EQ(DownloadAccident(AsBytes(TinyHfConfig(SmallestSpec()))),
            std::nullopt);
}

TEST(FileKind, AnUnfinishedDownloadIsToldByItsName) {
  const TempDir dir;
  auto bytes = MakeGguf(SmallestSpec(), DType::kF32);
  bytes.resize(bytes.size() - 100);
  for (const char* ending : {".part", ".incomplete", ".aria2"}) {
    const std::string path = dir.path() + "/m.gguf" + ending;
    WriteBytes(path, bytes);
    ExpectRefused(LoadModel(path), Code::kCorrupt, "download is not finished");
  }
  WriteBytes(dir.path() + "/m.gguf", bytes);
  ExpectRefused(LoadModel(dir.path() + "/m.gguf"), Code::kCorrupt,
                "cut off; download it again");
}

// A pointer in the place of one of a directory's files.
TEST(FileKind, PointersInADirectoryAreNamed) {
  for (const char* name :
       {"config.json", "model.safetensors", "generation_config.json"}) {
    const TempDir dir;
    WriteTextFile(dir.path() + "/config.json", TinyHfConfig(SmallestSpec()));
    ASSERT_TRUE(
        WriteTinySafetensors(
            dir.path() + "/model.safetensors",
            TinyTensors(SmallestSpec(), kHuggingFaceNames, true, false, true),
            DType::kF32)
            .ok());
    const std::string path = dir.path() + "/" + name;
    WriteTextFile(path, kLfsPointer);
    ExpectRefused(LoadModel(dir.path()), Code::kCorrupt, path + ": ");
    ExpectRefused(LoadModel(dir.path()), Code::kCorrupt, "git-lfs pointer");
  }
}

}  // namespace
}  // namespace hearth
