// Files made to hurt parsers: each must be refused or read without a crash, a
// hang or a large allocation. They lie outside the repository; where that
// folder is absent the tests skip (the fuzz corpora keep the smallest).
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "base/file.h"
#include "formats/gguf/gguf.h"
#include "formats/gguf/gguf_model.h"
#include "formats/huggingface/huggingface.h"
#include "formats/huggingface/safetensors.h"
#include "formats/huggingface/safetensors_header.h"
#include "formats/loader.h"
#include "hearth_test_paths.h"

namespace hearth {
namespace {

std::vector<std::string> FilesBelow(const std::string& folder) {
  const std::string root = HEARTH_SHARED "/models/hostile/" + folder;
  std::vector<std::string> paths;
  std::error_code missing;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(root, missing)) {
    if (entry.is_regular_file()) paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

TEST(HostileFiles, GgufIsReadOrRefused) {
  const auto paths = FilesBelow("gguf");
  if (paths.empty()) GTEST_SKIP() << "no hostile files here";
  EXPECT_GT(paths.size(), 240u);
  for (const std::string& path : paths) {
    SCOPED_TRACE(path);
    const auto file = GgufFile::Open(path);
    if (file.ok()) {
      for (const GgufEntry& e : file->entries()) {
        (void)file->TextArray(e.key);
        (void)file->FloatArray(e.key);
        (void)file->IntArray(e.key);
      }
    } else {
      EXPECT_NE(file.error().code, Code::kIo);
    }
    const auto model = LoadModel(path);
    ASSERT_FALSE(model.ok());
    EXPECT_TRUE(model.error().code == Code::kCorrupt ||
                model.error().code == Code::kUnsupported)
        << model.error().message;
  }
}

// The names say what the format's own implementation makes of each file.
TEST(HostileFiles, SafetensorsAgreeWithTheReference) {
  const auto paths = FilesBelow("safetensors");
  if (paths.empty()) GTEST_SKIP() << "no hostile files here";
  for (const std::string& path : paths) {
    const auto file = SafetensorsFile::Open(path);
    const std::string name = std::filesystem::path(path).filename().string();
    // Five bytes belong to no tensor of this file, whatever its name says.
    const bool expected =
        name.starts_with("ok-") && name != "ok-las7-tiny.safetensors";
    EXPECT_EQ(file.ok(), expected)
        << name << ": " << (file.ok() ? "accepted" : file.error().message);
    if (!file.ok()) {
      EXPECT_EQ(file.error().code, Code::kCorrupt) << name;
    }
  }
}

TEST(HostileFiles, JsonIsReadOrRefusedWhereverItMayStand) {
  const auto paths = FilesBelow("json");
  if (paths.empty()) GTEST_SKIP() << "no hostile files here";
  for (const std::string& path : paths) {
    SCOPED_TRACE(path);
    const auto text = ReadTextFile(path);
    ASSERT_TRUE(text.ok());
    const std::string name = std::filesystem::path(path).filename().string();
    const auto json = ParseJson(*text, name);
    // The JSON library takes a NUL byte for the end of the text.
    if (name.starts_with("n_") && text->find('\0') == std::string::npos) {
      EXPECT_FALSE(json.ok());
    }
    if (json.ok()) {
      EXPECT_FALSE(ReadHuggingFaceConfig(*json, name).ok());
    }
    EXPECT_FALSE(ParseShardIndex(*text, name).ok());
    const auto header = ParseSafetensorsHeader(*text, name);
    EXPECT_TRUE(!header.ok() || header->entries.empty());
  }
}

TEST(HostileFiles, WholeQuantisedFilesLoad) {
  const std::string folder = HEARTH_SHARED "/fixtures/gguf/tinyl-";
  for (const char* type : {"Q8_0", "Q4_K_M", "Q2_K", "IQ4_XS"}) {
    const std::string path = folder + type + ".gguf";
    if (!std::filesystem::exists(path)) GTEST_SKIP() << "no fixtures here";
    const auto model = LoadModel(path);
    EXPECT_TRUE(model.ok()) << model.error().message;
  }
}

}  // namespace
}  // namespace hearth
