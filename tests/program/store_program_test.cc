// The program and its prompt cache where something is in the way: signals,
// limits, typing errors, budgets.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "program_testing.h"
#include "testing/model_paths.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

namespace fs = std::filesystem;

class StoreProgram : public testing::Test {
 protected:
  // Runs a line of shell in which $H is the program and $M a model.
  Ran Shell(const std::string& line) const {
    return RunCommand(
        dir_, "export HEARTH_CACHE_DIR=" + dir_.path() +
                  "/default-cache; H=" HEARTH_PROGRAM " M=" + kStories260K +
                  "; cd " + dir_.path() + "; { " + line + "; } 2>" +
                  dir_.path() + "/stderr </dev/null");
  }
  std::uint64_t BytesOf(const std::string& name) const {
    std::uint64_t bytes = 0;
    for (const auto& entry :
         fs::recursive_directory_iterator(dir_.path() + "/" + name)) {
      if (entry.is_regular_file()) bytes += entry.file_size();
    }
    return bytes;
  }

  TempDir dir_;
};

TEST_F(StoreProgram, AHangupSavesWhatWasComputed) {
  const Ran ran = Shell(
      "$H sample $M -p 'Once upon a time' -n 400 --ignore-eos --temp 0 "
      "--prompt-cache-dir s >text & P=$!; "
      "while [ ! -s text ]; do sleep 0.02; done; kill -HUP $P; wait $P");
  EXPECT_TRUE(ran.exit_code == 130 || ran.exit_code == 0) << ran.err;
  const Ran list = Shell("$H cache ls s");
  EXPECT_NE(list.out.find("stories260K-"), std::string::npos) << list.out;
}

TEST_F(StoreProgram, ALimitOnFileLengthsCostsTheSaveAndNotTheText) {
  const Ran ran = Shell(
      "ulimit -f 4; $H sample $M -p 'Once upon a time' -n 20 --temp 0 "
      "--prompt-cache-dir s");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_GT(ran.out.size(), 10u);
  EXPECT_NE(ran.err.find("not saved"), std::string::npos) << ran.err;
}

TEST_F(StoreProgram, LookingForAReasonMakesNoDirectory) {
  EXPECT_NE(Shell("$H cache why typo $M -p x").exit_code, 0);
  EXPECT_FALSE(fs::exists(dir_.path() + "/typo"));
}

TEST_F(StoreProgram, AFileThatCannotBeWrittenIsRefusedBeforeAnyWork) {
  for (const char* target : {"nodir/x.kv", ".", "/dev/null"}) {
    const Ran ran =
        Shell("$H sample $M -p x -n 1 --cache-prompt " + std::string(target));
    EXPECT_EQ(ran.exit_code, 2) << target << ": " << ran.err;
    EXPECT_EQ(ran.out, "") << target;
  }
}

TEST_F(StoreProgram, ASharedCacheWithoutAKeyIsRefused) {
  const Ran ran = Shell(
      "$H sample $M -p x -n 1 --prompt-cache-dir s "
      "--cache-remote redis://127.0.0.1:1");
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_NE(ran.err.find("key"), std::string::npos) << ran.err;
}

TEST_F(StoreProgram, TheBudgetHoldsTokenizersAndDigestsToo) {
  for (const char* budget : {"5K", "16K", "60K"}) {
    const Ran ran = Shell(
        "$H sample $M -p 'Once upon a time' -n 2 --temp 0 --kv-quantize fp32 "
        "--prompt-cache-dir s --cache-disk-budget " +
        std::string(budget));
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    EXPECT_LE(BytesOf("s"), static_cast<unsigned>(std::atoi(budget)) * 1024u)
        << budget;
  }
}

TEST_F(StoreProgram, WipeEndsWith1WhenSomethingIsLeft) {
  ASSERT_EQ(Shell("$H sample $M -p 'Once upon a time' -n 2 --temp 0 "
                  "--prompt-cache-dir s")
                .exit_code,
            0);
  // A file system of its own cannot be removed; nor can what goes too deep.
  const Ran deep =
      Shell("mkdir -p s/blocks/a/b/c/d/e/f/g/h/i/j/k; $H cache wipe s --yes");
  EXPECT_EQ(deep.exit_code, 1);
  EXPECT_NE(deep.out.find("not deleted"), std::string::npos) << deep.out;
  EXPECT_EQ(Shell("rm -r s/blocks; $H cache wipe s --yes").exit_code, 0);
}

}  // namespace
}  // namespace hearth
