// Limits of the system: an error or a run with less, never an abort.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "program_testing.h"
#include "testing/model_paths.h"
#include "testing/sanitized.h"

namespace hearth {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

// The program under limits of the shell. A signal gives 128.
Ran RunLimited(const TempDir& dir, const std::string& limits,
               const std::string& arguments) {
  const std::string assigned = "HEARTH_CACHE_DIR=" + dir.path() + "/cache";
  return RunCommand(dir, limits + " && exec env " + assigned +
                             " " HEARTH_PROGRAM " 2>" + dir.path() +
                             "/stderr </dev/null " + arguments);
}

std::string Sample() {
  return "sample " + std::string(kStories260K) +
         " -p 'Once upon a time' -n 12 --temperature 0 -t 4";
}

TEST(ProgramLimits, WithoutAnyThreadTheTextIsTheSame) {
  if (kSanitized) GTEST_SKIP() << "sanitizers want threads of their own";
  const TempDir dir;
  const Ran free = RunLimited(dir, "true", Sample());
  ASSERT_EQ(free.exit_code, 0) << free.err;
  // A thread's stack is as large as this, which no address space has.
  const Ran none = RunLimited(dir, "ulimit -s 137438953472", Sample());
  EXPECT_EQ(none.exit_code, 0) << none.err;
  EXPECT_EQ(none.out, free.out);
}

TEST(ProgramLimits, WithoutMemoryThereIsAnErrorThatSaysSo) {
  if (kSanitized) GTEST_SKIP() << "sanitizers want all of the address space";
  const TempDir dir;
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += "Once there was a dog. ";
  std::ofstream(dir.path() + "/text") << text;
  const std::string tokenize = "tokenize " + std::string(kStories260K) +
                               " --file " + dir.path() + "/text >/dev/null";
  int n_refused = 0, n_done = 0;
  for (int mib = 32; mib <= 500; mib = mib * 5 / 4) {
    const std::string limit = "ulimit -v " + std::to_string(mib * 1024);
    // Too little to load the program, which is the system's affair.
    if (RunLimited(dir, limit, "--version >/dev/null").exit_code != 0) continue;
    const Ran ran = RunLimited(dir, limit, tokenize);
    EXPECT_THAT(ran.exit_code, AnyOf(0, 1)) << mib << " MiB\n" << ran.err;
    if (ran.exit_code != 0) {
      EXPECT_THAT(ran.err, HasSubstr("hearth: "));
      EXPECT_THAT(ran.err, HasSubstr("memory"));
    }
    ++(ran.exit_code == 0 ? n_done : n_refused);
  }
  EXPECT_GT(n_refused, 0);
  EXPECT_GT(n_done, 0);
}

}  // namespace
}  // namespace hearth
