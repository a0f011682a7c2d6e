// What the program does with its output: lost text is an error, files are
// replaced only when told.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "base/json.h"
#include "program_testing.h"
#include "testing/model_paths.h"

namespace hearth {
namespace {

TEST(ProgramOutput, WhatIsLostIsAnErrorOfEveryCommand) {
  TempDir dir;
  std::ofstream(dir.path() + "/t.jinja") << "{{ messages[0].content }}";
  std::ofstream(dir.path() + "/m.json")
      << R"([{"role":"user","content":"hi"}])";
  std::ofstream(dir.path() + "/ids.json") << "[1, 5, 9]";
  const std::string sample =
      "sample " + kStories260K + " -p Once -n 2 --temp 0 ";
  ASSERT_EQ(RunProgram(dir, sample).exit_code, 0);
  for (const std::string& command :
       {sample, sample + "--json", "tokenize " + kStories260K + " --text hi",
        "detokenize " + kStories260K + " --ids 5,6", std::string("--version"),
        std::string("sample --help"), "inspect " + kStories260K,
        "inspect --json " + kStories260K,
        "template " + dir.path() + "/t.jinja --messages " + dir.path() +
            "/m.json",
        "cache ls " + dir.path() + "/default-cache",
        "logits " + kStories260K + " --ids " + dir.path() + "/ids.json --out -",
        "perplexity " + kStories260K + " -c 8 --chunks 1 --text " + kTestData +
            "/models/SOURCES.md"}) {
    const Ran full = RunProgram(dir, command + " >/dev/full");
    EXPECT_EQ(full.exit_code, 1) << command;
    EXPECT_NE(full.err.find("standard output: No space left"),
              std::string::npos)
        << command << "\n"
        << full.err;
    const Ran closed = RunProgram(dir, command + " >&-");
    EXPECT_EQ(closed.exit_code, 1) << command;
    EXPECT_NE(closed.err.find("standard output"), std::string::npos)
        << command << "\n"
        << closed.err;
  }
}

TEST(ProgramOutput, AClosedStandardOutputIsNotTakenByAFile) {
  TempDir dir;
  // Were the first opened file descriptor 1, the text would go into the store.
  const std::string sample = "sample " + kStories260K +
                             " -p Once -n 3 --temp 0 --prompt-cache-dir " +
                             dir.path() + "/s";
  EXPECT_EQ(RunProgram(dir, sample + " >&-").exit_code, 1);
  const Ran verify =
      RunProgram(dir, "cache verify --json " + dir.path() + "/s");
  EXPECT_EQ((*ParseJson(verify.out, "verify"))["defects"].size(), 0u);
}

TEST(ProgramOutput, FilesAreReplacedOnlyWithForceAndDevicesNever) {
  TempDir dir;
  const std::string notes = dir.path() + "/notes.gguf";
  std::ofstream(notes) << "mine";
  for (const std::string& command :
       {"quantize " + kStories260K + " " + notes + " Q8_0",
        "convert " + kStories260K + " " + notes, "init tiny --out " + notes,
        "logits " + kStories260K + " --ids " + kTestData + "/none.json --out " +
            notes}) {
    const Ran refused = RunProgram(dir, command);
    EXPECT_EQ(refused.exit_code, 2) << command << refused.err;
    EXPECT_NE(refused.err.find("--force"), std::string::npos) << refused.err;
  }
  EXPECT_EQ(*ReadTextFile(notes), "mine");
  const Ran forced = RunProgram(
      dir, "quantize --force " + kStories260K + " " + notes + " --type Q8_0");
  EXPECT_EQ(forced.exit_code, 0) << forced.err;
  EXPECT_NE(forced.err.find("wrote " + notes), std::string::npos) << forced.err;
  const Ran full =
      RunProgram(dir, "convert " + kStories260K + " " + dir.path() + "/f.gguf");
  EXPECT_EQ(full.exit_code, 0) << full.err;
  std::filesystem::create_symlink("/dev/full", dir.path() + "/full.gguf");
  const Ran device = RunProgram(
      dir, "convert " + kStories260K + " " + dir.path() + "/full.gguf");
  EXPECT_EQ(device.exit_code, 1);
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
}

TEST(ProgramOutput, CtrlCInAWriterLeavesNothing) {
  TempDir dir;
  const std::string out = dir.path() + "/out";
  std::filesystem::create_directory(out);
  // Hundreds of megabytes, interrupted when its temporary has begun to grow.
  const std::string command =
      ProgramCommand(dir) + " init mega --out " + out + "/m.tinygpt 2>" +
      dir.path() + "/err & pid=$!; while kill -0 $pid && ! ls " + out +
      " | grep -q tmp; do sleep 0.01; done; kill -INT $pid; wait $pid";
  const int status = std::system(command.c_str());
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 130) << *ReadTextFile(dir.path() + "/err");
  EXPECT_TRUE(std::filesystem::is_empty(out));
}

TEST(ProgramOutput, WhatCannotBeKeptIsRefusedBeforeTheWork) {
  TempDir dir;
  const std::string chat = "chat " + kHfLlama + " --conversation ";
  std::ofstream(dir.path() + "/notes.txt") << "mine";
  for (const std::string& path :
       {dir.path() + "/none/x.chat", dir.path() + "/notes.txt", dir.path()}) {
    const Ran refused = RunProgram(dir, chat + path);
    EXPECT_NE(refused.exit_code, 0) << path;
  }
  EXPECT_EQ(*ReadTextFile(dir.path() + "/notes.txt"), "mine");
  for (const std::string& path :
       {dir.path() + "/none/x.kv", dir.path() + "/notes.txt", dir.path(),
        std::string("/dev/null")}) {
    const Ran refused = RunProgram(
        dir, "sample " + kStories260K + " -p x -n 1 --cache-prompt " + path);
    EXPECT_NE(refused.exit_code, 0) << path;
    EXPECT_EQ(refused.out, "") << path;
  }
  const Ran why = RunProgram(dir, "cache why " + dir.path() + "/typo -p x");
  EXPECT_EQ(why.exit_code, 1) << why.err;
  EXPECT_FALSE(std::filesystem::exists(dir.path() + "/typo"));
}

TEST(ProgramOutput, ThePromptCacheIsOnAndSaysOnceWhereItIs) {
  TempDir dir;
  const std::string sample = "sample " + kStories260K +
                             " -p 'Once upon a time there was a cat.' -n 2 "
                             "--temp 0 --json";
  const Ran first = RunProgram(dir, sample);
  EXPECT_NE(first.err.find("default-cache"), std::string::npos) << first.err;
  const Ran second = RunProgram(dir, sample);
  EXPECT_EQ(second.err.find("default-cache"), std::string::npos) << second.err;
  EXPECT_GT((*ParseJson(second.out, "json"))["reused_tokens"], 0);
  const Ran without = RunProgram(dir, sample + " --no-prompt-cache");
  EXPECT_EQ((*ParseJson(without.out, "json"))["reused_tokens"], 0);
}

TEST(ProgramOutput, APromptThatIsNotUtf8IsRefusedWithItsEncoding) {
  TempDir dir;
  std::ofstream(dir.path() + "/u16.txt") << std::string("\xff\xfeO\0n\0", 6);
  std::ofstream(dir.path() + "/latin1.txt") << "Gr\xfc\xdf"
                                               "e";
  const Ran u16 = RunProgram(
      dir, "sample " + kStories260K + " -f " + dir.path() + "/u16.txt");
  EXPECT_EQ(u16.exit_code, 2);
  EXPECT_NE(u16.err.find("UTF-16"), std::string::npos) << u16.err;
  const Ran latin = RunProgram(
      dir, "sample " + kStories260K + " -f " + dir.path() + "/latin1.txt");
  EXPECT_EQ(latin.exit_code, 2);
  EXPECT_NE(latin.err.find("byte 2"), std::string::npos) << latin.err;
}

}  // namespace
}  // namespace hearth
