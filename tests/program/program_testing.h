// Runs the hearth program as a user does.
#pragma once

#include <sys/wait.h>

#include <cstdio>
#include <string>

#include "base/file.h"
#include "hearth_test_paths.h"
#include "testing/temp_dir.h"

namespace hearth {

struct Ran {
  int exit_code = -1;
  std::string out, err;
};

// A prompt cache of the test's own: never the user's.
inline std::string ProgramCommand(const TempDir& dir) {
  return "HEARTH_CACHE_DIR=" + dir.path() + "/default-cache " HEARTH_PROGRAM;
}

// Runs a command of the shell whose errors go to `dir`'s file "stderr".
inline Ran RunCommand(const TempDir& dir, const std::string& command) {
  Ran ran;
  FILE* pipe = ::popen(command.c_str(), "r");
  char buffer[4096];
  std::size_t n;
  while ((n = std::fread(buffer, 1, sizeof(buffer), pipe)) > 0) {
    ran.out.append(buffer, n);
  }
  const int status = ::pclose(pipe);
  ran.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  ran.err = *ReadTextFile(dir.path() + "/stderr");
  return ran;
}

// Runs the program with shell-quoted arguments, which may redirect its output.
inline Ran RunProgram(const TempDir& dir, const std::string& arguments) {
  return RunCommand(dir, ProgramCommand(dir) + " 2>" + dir.path() +
                             "/stderr </dev/null " + arguments);
}

}  // namespace hearth
