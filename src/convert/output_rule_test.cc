// Where converted models may go, and what stays of one that is not finished.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "hearth/convert.h"
#include "testing/model_paths.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

namespace fs = std::filesystem;

std::ptrdiff_t CountFiles(const std::string& directory) {
  return std::distance(fs::directory_iterator(directory), {});
}

TEST(ConvertOutput, AFileThatIsThereIsReplacedOnlyWhenTold) {
  TempDir dir;
  const std::string out = dir.path() + "/notes.gguf";
  std::ofstream(out) << "mine";
  for (const auto& report : {ConvertModel(kStories260K, out),
                             QuantizeModel(kStories260K, out, "Q8_0")}) {
    ASSERT_FALSE(report.ok());
    EXPECT_EQ(report.error().code, Code::kInvalidArgument);
  }
  EXPECT_FALSE(InitModel("tiny", out, 0, false, 1).ok());
  EXPECT_EQ(*ReadTextFile(out), "mine");
  EXPECT_TRUE(ConvertModel(kStories260K, out, {.replace = true}).ok());
  EXPECT_NE(*ReadTextFile(out), "mine");
}

TEST(ConvertOutput, AModelIsNotWrittenOverItselfThroughALink) {
  TempDir dir;
  const std::string in = dir.path() + "/in.gguf";
  fs::copy(kStories260K, in);
  fs::create_symlink(in, dir.path() + "/link.gguf");
  fs::create_hard_link(in, dir.path() + "/hard.gguf");
  for (const char* out : {"/link.gguf", "/hard.gguf"}) {
    const auto refused =
        QuantizeModel(in, dir.path() + out, "Q8_0", {.replace = true});
    EXPECT_FALSE(refused.ok()) << out;
  }
  EXPECT_EQ(*ReadTextFile(in), *ReadTextFile(kStories260K));
}

TEST(ConvertOutput, ADirectoryOfAnotherModelIsNotMixed) {
  TempDir dir;
  for (const char* name :
       {"chat_template.jinja", "generation_config.json", "README.md",
        "model-00001-of-00002.safetensors", "model.safetensors.index.json"}) {
    std::ofstream(dir.path() + "/" + name) << "{}";
  }
  EXPECT_FALSE(ConvertModel(kStories260K, dir.path()).ok());
  EXPECT_EQ(CountFiles(dir.path()), 5);
  const auto report = ConvertModel(kStories260K, dir.path(), {.replace = true});
  ASSERT_TRUE(report.ok()) << report.error().message;
  for (const char* stale :
       {"chat_template.jinja", "model-00001-of-00002.safetensors",
        "model.safetensors.index.json"}) {
    EXPECT_FALSE(fs::exists(dir.path() + "/" + stale)) << stale;
  }
  // The model has end tokens to write there.
  EXPECT_NE(*ReadTextFile(dir.path() + "/generation_config.json"), "{}");
  EXPECT_TRUE(fs::exists(dir.path() + "/README.md"));
}

// What one user converts, others may read: the umask decides of every file.
TEST(ConvertOutput, EveryFileOfADirectoryHasTheModeOfTheUmask) {
  TempDir dir;
  ASSERT_TRUE(ConvertModel(kStories260K, dir.path() + "/hf").ok());
  fs::copy(dir.path() + "/hf", dir.path() + "/in");
  std::ofstream(dir.path() + "/in/README.md") << "---\nlicense: mit\n---\n";
  ASSERT_TRUE(ConvertModel(dir.path() + "/in", dir.path() + "/out").ok());
  std::ofstream(dir.path() + "/new") << "x";
  const auto mode = fs::status(dir.path() + "/new").permissions();
  for (const char* made : {"/hf", "/out"}) {
    int n = 0;
    for (const auto& file : fs::directory_iterator(dir.path() + made)) {
      EXPECT_EQ(file.status().permissions(), mode) << file.path();
      ++n;
    }
    EXPECT_GE(n, 5) << made;
  }
}

TEST(ConvertOutput, AStoppedWriterLeavesNothing) {
  TempDir dir;
  const WriteOptions stop{
      .progress = [](std::uint64_t done, std::uint64_t total) {
        EXPECT_LE(done, total);
        return done < total / 2;
      }};
  const auto quantized =
      QuantizeModel(kStories260K, dir.path() + "/q.gguf", "Q8_0", stop);
  ASSERT_FALSE(quantized.ok());
  EXPECT_EQ(quantized.error().code, Code::kCancelled);
  for (const char* out : {"/c.gguf", "/hf"}) {
    const auto report = ConvertModel(kStories260K, dir.path() + out, stop);
    ASSERT_FALSE(report.ok()) << out;
    EXPECT_EQ(report.error().code, Code::kCancelled) << out;
  }
  EXPECT_EQ(
      InitModel("tiny", dir.path() + "/i", 0, false, 1, stop).error().code,
      Code::kCancelled);
  EXPECT_EQ(CountFiles(dir.path()), 0);
}

TEST(ConvertOutput, ProgressEndsAtTheTotal) {
  TempDir dir;
  std::uint64_t last = 0, all = 0;
  const WriteOptions watch{
      .progress = [&](std::uint64_t done, std::uint64_t total) {
        EXPECT_GE(done, last);
        last = done;
        all = total;
        return true;
      }};
  const std::string out = dir.path() + "/q.gguf";
  ASSERT_TRUE(QuantizeModel(kStories260K, out, "Q8_0", watch).ok());
  EXPECT_EQ(last, all);
  EXPECT_EQ(all, fs::file_size(out));
}

}  // namespace
}  // namespace hearth
